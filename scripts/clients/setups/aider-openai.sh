export OPENAI_API_BASE=http://127.0.0.1:8080/v1
export OPENAI_API_KEY=my-own-key
export AIDER_MODEL=openai/combo/main
