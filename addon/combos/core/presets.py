"""Known providers: what has to be written for a vendor, by a short name. Data only; what is added is decided elsewhere.

Addresses and variable names are the vendors' documented ones. A `{placeholder}` in an address must be filled in by the
user; the configuration refuses it otherwise.
"""

from typing import Any

from combos.core.config_provider import Adapter, AuthMode
from combos.core.names import derived_key_variable
from combos.core.values import dataclass

_RESPONSES = Adapter.OPENAI_RESPONSES
_CHAT = Adapter.OPENAI_CHAT


@dataclass(frozen=True, slots=True)
class Preset:
    """One vendor. `variables` are the environment variables its key is usually in, the first one preferred; `fields`
    are further settings of the provider object. A keyless local server implies permission for private addresses."""

    id: str
    adapter: Adapter
    base_url: str
    variables: tuple[str, ...] = ()
    auth_mode: AuthMode = AuthMode.KEY
    is_key_optional: bool = False
    fields: tuple[tuple[str, Any], ...] = ()

    @property
    def auth(self) -> str:
        """How it is authenticated, in a word for people."""
        if self.auth_mode is AuthMode.KEY:
            return "key, optional" if self.is_key_optional else "key"
        return self.auth_mode.value

    def document(self, name: str, *, has_key: bool = False) -> dict[str, Any]:
        """The provider object for a row of this name, without a literal key; `has_key`: one will be added.

        A key is referred to only when the variable is not the one that is looked at anyway.
        """
        made: dict[str, Any] = {"adapter": self.adapter.value, "baseUrl": self.base_url}
        is_keyless = self.is_key_optional and not has_key and self.adapter is not Adapter.JEV_DECISION
        if is_keyless or self.auth_mode is not AuthMode.KEY:
            made["authMode"] = (AuthMode.LOCAL if is_keyless else self.auth_mode).value
        elif self.variables and self.variables[0] != derived_key_variable(name) and not self.is_key_optional:
            made["apiKey"] = f"${{{self.variables[0]}}}"
        if self.base_url.startswith("http://localhost"):
            made["allowPrivateNetwork"] = True
        return made | dict(self.fields)


_STATIC = (("liveModels", False),)

PRESETS: tuple[Preset, ...] = (
    Preset("openai", _RESPONSES, "https://api.openai.com/v1", ("OPENAI_API_KEY",)),
    Preset("chatgpt-codex", _RESPONSES, "https://chatgpt.com/backend-api/codex", auth_mode=AuthMode.FORWARD),
    Preset("anthropic", Adapter.ANTHROPIC, "https://api.anthropic.com", ("ANTHROPIC_API_KEY",)),
    Preset("google", Adapter.GOOGLE, "https://generativelanguage.googleapis.com", ("GEMINI_API_KEY",)),
    Preset(
        "azure-openai",
        Adapter.AZURE_OPENAI,
        "https://{resource}.openai.azure.com/openai",
        ("AZURE_OPENAI_API_KEY",),
        fields=_STATIC,
    ),
    Preset("openrouter", _CHAT, "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    Preset("groq", _CHAT, "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    Preset("deepseek", _CHAT, "https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    Preset("xai", _CHAT, "https://api.x.ai/v1", ("XAI_API_KEY",)),
    Preset("mistral", _CHAT, "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    Preset("together", _CHAT, "https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    Preset("fireworks", _CHAT, "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",)),
    Preset("cerebras", _CHAT, "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
    Preset("moonshot", _CHAT, "https://api.moonshot.ai/v1", ("MOONSHOT_API_KEY",)),
    Preset("kimi-code", _CHAT, "https://api.kimi.com/coding/v1", ("KIMI_API_KEY",)),
    Preset("zai", _CHAT, "https://api.z.ai/api/coding/paas/v4", ("ZAI_API_KEY",)),
    Preset("zai-anthropic", Adapter.ANTHROPIC, "https://api.z.ai/api/anthropic", ("ZAI_API_KEY",)),
    Preset("qwen", _CHAT, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", ("DASHSCOPE_API_KEY",)),
    Preset("qwen-coding", _CHAT, "https://coding-intl.dashscope.aliyuncs.com/v1", ("DASHSCOPE_API_KEY",)),
    Preset("minimax", _CHAT, "https://api.minimax.io/v1", ("MINIMAX_API_KEY",)),
    Preset("minimax-cn", _CHAT, "https://api.minimaxi.com/v1", ("MINIMAX_API_KEY",)),
    Preset("nvidia", _CHAT, "https://integrate.api.nvidia.com/v1", ("NVIDIA_API_KEY",)),
    Preset("sambanova", _CHAT, "https://api.sambanova.ai/v1", ("SAMBANOVA_API_KEY",)),
    Preset("deepinfra", _CHAT, "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_API_KEY",)),
    Preset("novita", _CHAT, "https://api.novita.ai/openai/v1", ("NOVITA_API_KEY",)),
    Preset("huggingface", _CHAT, "https://router.huggingface.co/v1", ("HF_TOKEN",)),
    Preset("github-copilot", _CHAT, "https://api.githubcopilot.com", auth_mode=AuthMode.OAUTH),
    Preset("github-models", _CHAT, "https://models.github.ai/inference", ("GITHUB_TOKEN",)),
    Preset("opencode-zen", _CHAT, "https://opencode.ai/zen/v1", ("OPENCODE_API_KEY",)),
    Preset("vercel-ai-gateway", _CHAT, "https://ai-gateway.vercel.sh/v1", ("AI_GATEWAY_API_KEY",)),
    Preset(
        "cloudflare-ai-gateway",
        Adapter.ANTHROPIC,
        "https://gateway.ai.cloudflare.com/v1/{account}/{gateway}/anthropic",
        ("ANTHROPIC_API_KEY",),
    ),
    Preset("ollama", _CHAT, "http://localhost:11434/v1", auth_mode=AuthMode.LOCAL),
    Preset("lm-studio", _CHAT, "http://localhost:1234/v1", auth_mode=AuthMode.LOCAL),
    Preset("vllm", _CHAT, "http://localhost:8000/v1", auth_mode=AuthMode.LOCAL),
    Preset("llama.cpp", _CHAT, "http://localhost:8080/v1", auth_mode=AuthMode.LOCAL),
    Preset("litellm", _CHAT, "http://localhost:4000/v1", ("LITELLM_API_KEY",), is_key_optional=True),
    Preset(
        "jev",
        Adapter.JEV_DECISION,
        "https://api.typesafe.ai/v1/systemone",
        ("TYPESAFE_API_KEY", "JEV_API_KEY"),
        is_key_optional=True,
        fields=_STATIC,
    ),
)


def preset(name: str) -> Preset | None:
    """The vendor of this name."""
    return next((row for row in PRESETS if row.id == name), None)
