"""Field case FC-48: the guide has trust set where the client reads it."""

import re
from pathlib import Path

from rawclient import ask
from stage import Case, stage
from wires import R

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_fc_48_the_guide_sets_trust_in_the_shell_that_starts_the_client() -> None:
    _, _, guide = README.partition("## Point a client at it")
    guide = guide.partition("\n## ")[0]
    assert re.search(r"[Ee]xport\s+the variables in the shell that starts the client", guide)
    rows = {
        row.split("|")[1].strip(): row for row in guide.splitlines() if "HTTPS_PROXY" in row and row.startswith("|")
    }
    assert {
        name: variable
        for name, variable in (
            ("Codex CLI", "CODEX_CA_CERTIFICATE"),
            ("Claude Code", "NODE_EXTRA_CA_CERTS"),
            ("Python SDKs", "SSL_CERT_FILE"),
        )
        if variable not in rows[name]
    } == {}
    # Which of them keeps the system's certificates, and which takes their place.
    assert re.search(r"`NODE_EXTRA_CA_CERTS` adds to", guide)
    assert re.search(r"`SSL_CERT_FILE` and `CODEX_CA_CERTIFICATE` take their place", guide)
    # Settings files of the clients are read after trust is fixed: none is named.
    assert "settings.json" not in guide


async def test_fc_48_the_check_of_the_guide_shows_that_the_proxy_is_in_use(confdir: Path) -> None:
    found = re.search(
        r"`curl (-s -o /dev/null -w '%\{http_code\}\\n') http://127\.0\.0\.1:8080/` prints `(\d+)`", README
    )
    assert found
    async with stage(confdir, Case(R, alpha=R.answers("ok"))) as on:
        assert (await ask(on.port, "GET", "/")).status == int(found[2])
