"""Entry file for `mitmdump -s addon/main.py`. Its folder becomes the first on `sys.path`, so nothing else lies here."""

from combos.mitm.addon import Combos

addons = [Combos()]
