"""Every number the rules use, once, with its reason. Durations are milliseconds unless the name says otherwise."""

# Configuration fields: functional spec, "Configuration reference".
WEIGHT_MAX = 10_000
STICKY_MAX = 100
COOLDOWN_MAX_MS = 600_000  # also the cap of configured, fallback and reset-derived cooldowns: 10 minutes
WAIT_MAX_MS = 600_000  # waitForCooldownMs
DECISION_TIMEOUT_MIN_MS = 1_000
DECISION_TIMEOUT_MAX_MS = 120_000
DECISION_TIMEOUT_DEFAULT_MS = 4_000
MODEL_PROFILE_MAX = 512  # characters of an operator's note on a target
DECISION_MODEL_MAX = 512  # characters of a route
DISPLAY_NAME_MAX = 128  # characters after trimming
MODEL_ID_MAX = 512  # characters of a target's model id: the longest a decision candidate may carry

# Timeouts of an exchange with a target.
CONNECT_TIMEOUT_MS = 10_000  # a host that does not accept within this is down
HEAD_TIMEOUT_MS = 200_000  # non-streaming reasoning models answer after minutes
IDLE_TIMEOUT_MS = 300_000  # longest silence before and between output
TIMEOUT_MAX_MS = 3_600_000  # an hour: anything longer is a typing mistake
ENDED_IDLE_MS = 10_000  # an answer that has said how it ended: usage and a last chunk follow at once, or nothing does
FIRST_OUTPUT_TIMEOUT_MAX_MS = 600_000  # firstOutputTimeoutMs: hop when the head came but no output did
HEDGE_MAX_MS = 600_000  # hedgeAfterMs: a second target is asked when the first is silent this long

# Provider fields.
TOKENS_MAX = 100_000_000  # context windows and output limits: above any model
COST_MAX = 1_000_000  # USD per million tokens: above any price list
HEADERS_MAX = 64  # configured extra headers of one provider
HEADER_VALUE_MAX = 8_192  # what common servers accept in one header line
URL_MAX = 2_048
ACCOUNTS_MAX = 64  # token files of one provider: above any team's
TEXT_MAX = 8_192  # any other text of the configuration: keys, labels, ids

# Budgets.
BUDGET_USD_MAX = 100_000_000  # above any month of a company
BUDGET_TOKENS_MAX = 10**15

# The configuration file.
CONFIG_BYTES_MAX = 16 * 1024 * 1024  # a file larger than this is not a configuration
CONFIG_DEPTH_MAX = 64  # nesting of the file; the models nest five deep
PROBLEMS_MAX = 200  # problems listed for one file; the rest is counted

# Server fields.
PORT_MAX = 65_535
LEDGER_BYTES_DEFAULT = 256 * 1024 * 1024  # usage ledger size at which it is rotated
INBOUND_BODY_DEFAULT = 64 * 1024 * 1024  # request body, as sent and decompressed
INBOUND_HEAD_MAX = 128 * 1024  # header fields of a request: four times what servers of vendors take
BYTES_MAX = 2**40  # upper bound of configured sizes: one TiB
INBOUND_HEAD_S = 60  # from the first bytes of a head to its end, at the listener: clients send it at once
PACING_MAX = 1_000_000  # requests per minute and in flight: above any quota
