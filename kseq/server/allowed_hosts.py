"""Which sites may send requests."""

import ipaddress
import re

from kseq.server.request_error import RequestError


class AllowedHosts:
    """Rejects requests from web pages of other sites.

    A page can be served under a name that later points to this machine (DNS
    rebinding), so the Host of a request must be a known name or an IP address.
    And a page can send a POST whose answer it cannot read, so a POST must not
    come from another site.

    Args:
        names: of hosts, such as `localhost`; with "*" any Host is allowed.
    """

    def __init__(self, names):
        self.names = {_name(name.lower()) for name in names}

    def check(self, scope):
        """Raises a RequestError unless a request may be answered.

        Args:
            scope: dict of ASGI.
        """
        headers = {
            key: value.decode("latin-1").lower()
            for key, value in scope["headers"]
        }
        host = headers.get(b"host")  # HTTP/1.0 needs none
        if host is not None and not self._is_known(_name(host)):
            raise RequestError(
                "The Host of the request is not allowed; see --allow-host",
                status=403,
            )
        if scope["method"] != "POST":  # has no side effects
            return
        site = headers.get(b"sec-fetch-site")  # only browsers set it
        origin = headers.get(b"origin")
        is_ours = site in ("same-origin", "none") or origin is None
        if site == "cross-site" or not (
            is_ours or self._is_known_origin(origin, host)
        ):
            raise RequestError(
                "The request comes from a page of another site; see "
                "--allow-host",
                status=403,
            )

    def _is_known(self, name):
        return "*" in self.names or name in self.names or _is_address(name)

    def _is_known_origin(self, origin, host):
        """Whether an origin is the Host, or one that `--allow-host` names."""
        place = origin.partition("://")[2]
        name = _name(place)
        # Other ports of this machine are other sites.
        is_local = name == "localhost" or _is_address(name)
        return (
            (bool(place) and place == host)
            or "*" in self.names
            or (name in self.names and not is_local)
        )


def _name(host):
    """A host without its port, and without the dot of the root."""
    return re.sub(r":\d*$", "", host).removesuffix(".")


def _is_address(name):
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        address = ipaddress.ip_address(name[1:-1] if is_bracketed else name)
    except ValueError:
        return False
    return is_bracketed == (address.version == 6)
