"""One example for each object of the configuration; together they show every field. Tests hold them valid and whole."""

from typing import Any

TARGET: dict[str, Any] = {
    "provider": "openrouter",
    "model": "vendor/model-large",
    "weight": 3,
    "lastResort": True,
    "reasoningEfforts": ["low", "high"],
    "modelProfile": "Long documents; slow.",
}

COMBO: dict[str, Any] = {
    "alias": "team/main",
    "displayName": "Main",
    "strategy": "round-robin",
    "stickyLimit": 5,
    "targets": [{"provider": "anthropic", "model": "claude-opus-4-8"}, TARGET],
    "cooldownMs": 30000,
    "waitForCooldownMs": 5000,
    "cooldownWaitPolicy": "before-last-resort",
    "defaultEffort": "medium",
    "defaultEffortMode": "fallback",
    "reasoningEffortMode": "adaptive",
    "imageInput": "auto",
    "contextOverflow": "hop",
    "affinity": "conversation",
    "firstOutputTimeoutMs": 20000,
    "hedgeAfterMs": 8000,
}

NATIVE_COMBO: dict[str, Any] = {
    "alias": "gpt-5.5",
    "nativeAlias": True,
    "displayName": "GPT-5.5 with a spare",
    "targets": [{"provider": "openai", "model": "gpt-5.5"}, {"provider": "openrouter", "model": "vendor/model-large"}],
}

DECIDING_COMBO: dict[str, Any] = {
    "strategy": "jev",
    "decisionModel": "openrouter/vendor/model-small",
    "decisionTimeoutMs": 8000,
    "targets": [{"provider": "openai", "model": "gpt-5.5"}, {"provider": "openrouter", "model": "vendor/model-large"}],
}

SERVICE_COMBO: dict[str, Any] = {
    "strategy": "jev",
    "decisionProvider": "jev",
    "targets": [{"provider": "openai", "model": "gpt-5.5"}, {"provider": "openrouter", "model": "vendor/model-large"}],
}

PROVIDER: dict[str, Any] = {
    "adapter": "openai-chat",
    "baseUrl": "https://openrouter.ai/api/v1",
    "apiKey": "${OPENROUTER_API_KEY}",
    "apiKeyPool": [{"id": "second", "key": "${OPENROUTER_SECOND_KEY}", "label": "team B", "addedAt": "2026-11-01"}],
    "apiKeyPoolStrategy": "round-robin",
    "headers": {"X-Title": "combos"},
    "disabled": False,
    "connectTimeoutMs": 5000,
    "headTimeoutMs": 120000,
    "idleTimeoutMs": 60000,
    "proxy": "http://proxy.example.com:3128",
    "noProxy": ["internal.example.com", "10.0.0.0/8"],
    "alias": "or",
    "models": ["vendor/model-large", "vendor/model-small"],
    "defaultModel": "vendor/model-small",
    "liveModels": True,
    "selectedModels": ["vendor/model-large"],
    "retainModels": ["vendor/model-small"],
    "modelAliases": {"vendor/model-large": "large"},
    "modelDisplayNames": {"vendor/model-large": "Large"},
    "modelAdapters": {"vendor/model-small": "openai-responses"},
    "modelCosts": {"vendor/model-large": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}},
    "contextWindow": 128000,
    "modelContextWindows": {"vendor/model-large": 200000},
    "modelMaxInputTokens": {"vendor/model-large": 180000},
    "modelMaxOutputTokens": {"vendor/model-large": 32000},
    "defaultMaxOutputTokens": 8192,
    "modelInputModalities": {"vendor/model-large": ["text", "image"]},
    "noVisionModels": ["vendor/model-small"],
    "reasoningEfforts": ["low", "medium", "high"],
    "modelReasoningEfforts": {"vendor/model-large": ["low", "high", "max"]},
    "noReasoningModels": ["vendor/model-small"],
    "reasoningEffortMap": {"max": "xhigh"},
    "modelReasoningEffortMap": {"vendor/model-small": {"low": "__omit__"}},
}

KEPT_PROVIDER: dict[str, Any] = {
    "adapter": "openai-chat",
    "baseUrl": "https://gateway.example.com/v1",
    "requestPacing": {
        "enabled": True,
        "requestsPerMinute": 60,
        "minIntervalMs": 100,
        "maxConcurrentRequests": 4,
        "models": {"vendor/model-large": {"requestsPerMinute": 10}},
    },
    "upstreamHttpVersion": "auto",
    "modelDefaultReasoningEfforts": {"vendor/model-large": "low"},
    "pinnedReasoningEffort": "high",
}

ANTHROPIC: dict[str, Any] = {
    "adapter": "anthropic",
    "baseUrl": "https://api.anthropic.com",
    "authMode": "key",
    "apiKey": "keychain:anthropic",
    "apiKeyTransport": "bearer",
}

ACCOUNTS: dict[str, Any] = {
    "adapter": "openai-responses",
    "baseUrl": "https://chatgpt.com/backend-api/codex",
    "authMode": "oauth",
    "accountPool": [{"id": "work", "tokenFile": "~/.codex/auth.json", "label": "the company's"}],
}

LOCAL: dict[str, Any] = {
    "adapter": "ollama-native",
    "baseUrl": "http://localhost:11434",
    "authMode": "local",
    "allowPrivateNetwork": True,
}

BUDGET: dict[str, Any] = {"usdPerDay": 5, "usdPerMonth": 100, "tokensPerDay": 2000000, "tokensPerMonth": 50000000}

DOCUMENT: dict[str, Any] = {
    "$schema": "combos.schema.json",
    "port": 10100,
    "hostname": "127.0.0.1",
    "defaultProvider": "openrouter",
    "providers": {
        "openai": {
            "adapter": "openai-responses",
            "baseUrl": "https://api.openai.com/v1",
            "apiKey": "${OPENAI_API_KEY}",
        },
        "anthropic": ANTHROPIC,
        "openrouter": PROVIDER,
        "chatgpt": ACCOUNTS,
        "ollama": LOCAL,
        "gateway": KEPT_PROVIDER,
    },
    "combos": {"main": COMBO, "native": NATIVE_COMBO, "decided": DECIDING_COMBO, "typesafe": SERVICE_COMBO},
    "disabledModels": ["openrouter/vendor/model-small"],
    "apiKeys": ["${COMBOS_TEAM_KEY}", {"id": "ci", "key": "${COMBOS_CI_KEY}", "name": "build machines"}],
    "corsAllowOrigins": ["https://tools.example.com"],
    "codexAccountNamespaces": {"private": "@main"},
    "selectorExemptHosts": ["openrouter.ai"],
    "blockedModelRedirects": {"old-model": "combo/main"},
    "fastRows": True,
    "cursorEffortRows": False,
    "budgets": {"providers": {"openrouter": BUDGET}, "combos": {"main": {"tokensPerDay": 1000000}}},
    "usageLedgerMaxBytes": 268435456,
    "maxInboundBodyBytes": 67108864,
}
"""A whole file. Pages show parts of it."""
