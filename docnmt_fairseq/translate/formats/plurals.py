"""Plural rules of languages, as gettext writes them."""

_TWO = "nplurals=2; plural=(n != 1);"
_SLAVIC = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
_EAST = f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_SLAVIC}"
_ONE_TO_FOUR = "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;"
RULES = {
    **dict.fromkeys(("id", "ja", "km", "ko", "lo", "ms", "my", "th", "vi", "zh"), "nplurals=1; plural=0;"),
    **dict.fromkeys(("fr", "pt_BR"), "nplurals=2; plural=(n > 1);"),
    **dict.fromkeys(("be", "bs", "hr", "ru", "sr", "uk"), _EAST),
    **dict.fromkeys(("cs", "sk"), _ONE_TO_FOUR),
    "ar": "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);",
    "ga": "nplurals=3; plural=(n==1 ? 0 : n==2 ? 1 : 2);",
    "lt": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "lv": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);",
    "pl": f"nplurals=3; plural=(n==1 ? 0 : {_SLAVIC}",
    "ro": "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);",
    "sl": "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
}


def plural_rule(locale: str) -> str:
    """Returns the value of ``Plural-Forms`` for a language such as ``pl`` or ``pt_BR``."""
    return RULES.get(locale) or RULES.get(locale.split("_")[0].lower()) or _TWO
