export ANTHROPIC_BASE_URL=http://127.0.0.1:8080
export ANTHROPIC_AUTH_TOKEN=my-own-key
export ANTHROPIC_MODEL=combo/main
