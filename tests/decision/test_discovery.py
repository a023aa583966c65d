"""Decision services that are configured, and models that look like one."""

from combos.decision.discovery import discover
from decisions import provider, registry, row

MADE = registry(
    providers={
        "tev": row("http://127.0.0.1:1/v1/systemone"),
        "off": row("http://127.0.0.1:1/v1/systemone", disabled=True),
        "jev": row("http://127.0.0.1:1/v1/systemone"),
        "zen": provider(baseUrl="https://zen.example/v1/", models=["JEV-1.13-free", "glm-5", "my-decision"]),
        "gone": provider(models=["jev-x"], disabled=True),
    }
)


def test_rows_with_what_is_wrong_with_them() -> None:
    assert discover(MADE)["configured"] == [
        {"id": "tev", "url": "http://127.0.0.1:1/v1/systemone", "model": "tev1:4b", "usable": True},
        {"id": "off", "url": "http://127.0.0.1:1/v1/systemone", "usable": False, "issue": "disabled"},
    ]


def test_models_by_their_names() -> None:
    endpoint = "https://zen.example/v1/systemone"
    assert discover(MADE)["discovered"] == [
        {"provider": "zen", "model": "JEV-1.13-free", "endpoint": endpoint},
        {"provider": "zen", "model": "my-decision", "endpoint": endpoint},
    ]


def test_a_query_narrows_both() -> None:
    assert discover(MADE, " TEV") == {"configured": discover(MADE)["configured"][:1], "discovered": []}  # type: ignore[index]
    assert [row["model"] for row in discover(MADE, "zen/my")["discovered"]] == ["my-decision"]  # type: ignore[attr-defined]


def test_no_more_than_fifty() -> None:
    made = registry(providers={"zen": provider(models=[f"jev-{n}" for n in range(60)])})
    assert len(discover(made)["discovered"]) == 50  # type: ignore[arg-type]
