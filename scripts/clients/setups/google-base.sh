export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8080
export GEMINI_API_KEY=my-own-key
