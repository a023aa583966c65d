export OPENAI_BASE_URL=http://127.0.0.1:8080/v1
export OPENAI_API_KEY=my-own-key
export ANTHROPIC_BASE_URL=http://127.0.0.1:8080
export ANTHROPIC_API_KEY=my-own-key
export GEMINI_API_BASE=http://127.0.0.1:8080
export GEMINI_API_KEY=my-own-key
