export OPENAI_API_KEY=my-own-key
