"""URLs as Go 1.26 reads them: what ParseRequestURI and Parse give, written anew, or the fault behind "!"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from policysched.cel.values.urls import Url, UrlError, parse_request_uri, parse_url

READ: Final = (
    ("https://a.example::80/b", '! invalid port "::80" after host', '! invalid port "::80" after host'),
    ("ftp://a.example::80/b", "ftp://a.example::80/b", "ftp://a.example::80/b"),
    ("http://a:b@c:80/d?e=f#g", "http://a:b@c:80/d?e=f#g", "http://a:b@c:80/d?e=f#g"),
    ("http://[::1]:80/", "http://[::1]:80/", "http://[::1]:80/"),
    ("http://[fe80::1%25en0]:8080/", "http://[fe80::1%25en0]:8080/", "http://[fe80::1%25en0]:8080/"),
    ("http://[fe80::1%2541]/", "http://[fe80::1%2541]/", "http://[fe80::1%2541]/"),
    ("http://[fe80::1%25%41]/", "http://[fe80::1%25A]/", "http://[fe80::1%25A]/"),
    ("http://[fe80::1%25%2f]/", '! invalid URL escape "%2f"', '! invalid URL escape "%2f"'),
    ("http://[1.2.3.4]/", "! invalid IP-literal", "! invalid IP-literal"),
    ("http://[::ffff:1.2.3.4]/", "http://[::ffff:1.2.3.4]/", "http://[::ffff:1.2.3.4]/"),
    ("http://a[::1]/", "! invalid IP-literal", "! invalid IP-literal"),
    ("http://[[::1]/", "! invalid IP-literal", "! invalid IP-literal"),
    ("http://[::1/", "! missing ']' in host", "! missing ']' in host"),
    ("http://[::1]:8a/", '! invalid port ":8a" after host', '! invalid port ":8a" after host'),
    ("http://a%20b/", '! invalid URL escape "%20"', '! invalid URL escape "%20"'),
    ("http://a%25b/", "http://a%25b/", "http://a%25b/"),
    ("http://a b/", '! invalid character " " in host name', '! invalid character " " in host name'),
    ("http://h/%zz", '! invalid URL escape "%zz"', '! invalid URL escape "%zz"'),
    ("http://h/%é", '! invalid URL escape "%é"', '! invalid URL escape "%é"'),
    ("http://h/a%2fb", "http://h/a%2fb", "http://h/a%2fb"),
    ("http:/path", "http:/path", "http:/path"),
    ("http:///path", "http:///path", "http:///path"),
    ("http:path", "http:path", "http:path"),
    ("a:b", "a:b", "a:b"),
    ("./a:b", "! invalid URI for request", "./a:b"),
    ("/x?y?", "/x?y?", "/x?y?"),
    ("*", "*", "*"),
    ("http://u%zz@h/", '! invalid URL escape "%zz"', '! invalid URL escape "%zz"'),
    ("http://u<@h/", "! net/url: invalid userinfo", "! net/url: invalid userinfo"),
    ("##", "! invalid URI for request", "#%23"),
    ("/p#<a>'é", "/p%23%3Ca%3E%27%C3%A9", "/p#%3Ca%3E%27%C3%A9"),
    ("/p#a%20b", "/p%23a%20b", "/p#a%20b"),
)


def said(read: Callable[[str], Url], text: str) -> str:
    try:
        return read(text).text()
    except UrlError as error:
        return str(error).replace(f'parse "{text}":', "!")


@pytest.mark.parametrize(("text", "requested", "parsed"), READ)
def test_urls_are_read_as_go_reads_them(text: str, requested: str, parsed: str) -> None:
    assert said(parse_request_uri, text) == requested
    assert said(parse_url, text) == parsed


def test_parts_are_those_of_go() -> None:
    found = parse_url("http://[fe80::1%25%41]:8080/a%2fb")
    assert (found.host, found.hostname(), found.port()) == ("[fe80::1%A]:8080", "fe80::1%A", "8080")
    assert (found.path, found.escaped_path()) == ("/a/b", "/a%2fb")
    assert parse_url("http://%e4/").host.encode(errors="surrogateescape") == b"\xe4"
    with pytest.raises(UrlError, match=r'invalid URL escape "%\+\\xc3"'):
        parse_url("*%+é")
