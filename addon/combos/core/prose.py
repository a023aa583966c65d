"""Phrases in error messages: spent window, rate, overflow, policy, model lifecycle, and what hops without a code.

Every test takes folded prose (lower case, single spaces) and is a substring search or an anchored match, so that it is
linear in the length of the text. What may count as prose at all is decided where the message is read.
"""

import re

SPENT_WINDOW = ("usage limit reached", "usage limit has been reached", "usage limit was reached")
MONTHLY_CAP = ("monthly usage limit reached",)
REQUEST_RATE = ("rate limit reached for requests",)
OVERFLOW = (
    "exceeds the context window",
    "exceed the context window",
    "context window exceeded",
    "context length exceeded",
    "maximum context length",
    "maximum context window",
    "too many tokens",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "invalid_request_prompt_too_long",
)
CYBER = ("high-risk cyber", "possible cybersecurity risk")
CYBER_TOPICS = ("cybersecurity", "cyber activity")
CREDIT_BALANCE = "your credit balance is too low to access the anthropic api"
FREE_TIER = "free tier"
FREE_TIER_TOPICS = ("single request", "prompt")
LIFECYCLE = (
    "end of life",
    "end-of-life",
    "no longer available",
    "deprecated",
    "retired",
    "retirement",
    "sunset",
    "decommissioned",
)
HOP_CLASS = (
    *SPENT_WINDOW,
    "insufficient_quota",
    "exceeded your current quota",
    "quota exhausted",
    "account quota exceeded",
    "monthly quota exceeded",
    "daily quota exceeded",
    "monthly/daily quota exceeded",
    "rate limit",
    "too many requests",
    "resource exhausted",
    "throttling",
    "invalid api key",
    "authentication failed",
    "unauthorized",
    "overloaded",
    "server is busy",
    "temporarily unavailable",
    "requires a subscription",
    "subscription required",
)

_MODEL_WORD = re.compile(r"\bmodel\b")


def has_any(prose: str, phrases: tuple[str, ...]) -> bool:
    """Whether one of the phrases occurs."""
    return any(phrase in prose for phrase in phrases)


def is_spent_window(prose: str) -> bool:
    """The account's usage window is used up."""
    return has_any(prose, SPENT_WINDOW)


def is_monthly_cap(prose: str) -> bool:
    """A monthly plan cap: the one phrase that widens the scope, and only on 429."""
    return has_any(prose, MONTHLY_CAP)


def is_request_rate(prose: str) -> bool:
    """Too many requests in a short time; window wording outranks it."""
    return has_any(prose, REQUEST_RATE) and not is_spent_window(prose)


def is_overflow(prose: str) -> bool:
    """The request does not fit the model's context."""
    return has_any(prose, OVERFLOW)


def is_cyber(prose: str) -> bool:
    """A cyber-policy refusal in words; the bare token `cyber_policy` may be part of a model's name."""
    return has_any(prose, CYBER) or ("flagged" in prose and has_any(prose, CYBER_TOPICS))


def is_credit_balance(prose: str) -> bool:
    """The documented billing refusal that arrives as a caller error."""
    return prose.startswith(CREDIT_BALANCE)


def is_free_tier_prompt_cap(prose: str) -> bool:
    """The prompt is longer than the free tier allows for one request."""
    return FREE_TIER in prose and has_any(prose, FREE_TIER_TOPICS)


def is_model_gone(prose: str) -> bool:
    """A lifecycle word together with the word `model`: an endpoint may be retired too."""
    return has_any(prose, LIFECYCLE) and _MODEL_WORD.search(prose) is not None


def is_hop_class(prose: str) -> bool:
    """Words of quota, rate, credential, overload or subscription, for failures without any code."""
    return has_any(prose, HOP_CLASS)
