"""Commands whose options with one value may be given once: a second value is refused, not taken in silence."""

from __future__ import annotations

from collections import Counter

from typer.core import TyperCommand

from policysched.errors import UsageError


class OnceCommand(TyperCommand):
    """A command that counts its options before it reads them."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        """Refuse an option with one value that stands there twice; flags may be repeated.

        Raises:
            UsageError: there is one.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for parameter, count in Counter(order).items():
            if count > 1 and parameter.nargs == 1 and not _many(parameter):
                raise UsageError(f"{parameter.opts[0]} is given {count} times, and takes one value")
        return super().parse_args(ctx, args)


def _many(parameter: object) -> bool:
    return any(getattr(parameter, name, False) for name in ("multiple", "is_flag", "count"))
