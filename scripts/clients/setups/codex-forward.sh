export HTTPS_PROXY=http://127.0.0.1:8080
export CODEX_CA_CERTIFICATE=~/.mitmproxy/mitmproxy-ca-cert.pem
