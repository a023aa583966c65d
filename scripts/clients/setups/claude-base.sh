export ANTHROPIC_BASE_URL=http://127.0.0.1:8080
export ANTHROPIC_API_KEY=my-own-key
export ANTHROPIC_MODEL=combo/main
