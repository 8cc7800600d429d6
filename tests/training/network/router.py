"""Turn the network namespace that this runs in into a home's router.

    python tests/training/network/router.py WAN [--symmetric]

Packets that leave by the interface WAN get the router's address, and nobody is let in from there
who was not called. A symmetric router also gives every connection a port of its own. The rules are
the kernel's own (nftables), so that no program but Python is needed; they end with the namespace.
"""

import argparse
import sys
from typing import Any

from pyroute2.netlink.nfnetlink.nftsocket import Cmp, Meta, Regs
from pyroute2.nftables.expressions import genex, verdict
from pyroute2.nftables.main import NFTables

DROP, ACCEPT = 0, 1  # verdicts, from include/uapi/linux/netfilter.h
CT_STATE = 0  # the same for all below: include/uapi/linux/netfilter/nf_tables.h
NEW = 1 << 3  # a connection's first packet
INTERFACE_NAME = 16  # bytes
AFTER_ROUTING = 100  # the priority of source addresses

Expressions = list[dict[str, Any]]


def _data(value: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", value)]}


def _interface(side: Meta, name: str) -> Expressions:
    padded = _data(name.encode().ljust(INTERFACE_NAME, b"\0"))
    return [
        genex("meta", {"key": side, "dreg": Regs.NFT_REG_1}),
        genex("cmp", {"sreg": Regs.NFT_REG_1, "op": Cmp.NFT_CMP_EQ, "data": padded}),
    ]


def _is_new() -> Expressions:
    state = {"sreg": Regs.NFT_REG_1, "dreg": Regs.NFT_REG_1, "len": 4}
    mask = {"mask": _data(NEW.to_bytes(4, sys.byteorder)), "xor": _data(bytes(4))}
    return [
        genex("ct", {"key": CT_STATE, "dreg": Regs.NFT_REG_1}),
        genex("bitwise", state | mask),
        genex("cmp", {"sreg": Regs.NFT_REG_1, "op": Cmp.NFT_CMP_NEQ, "data": _data(bytes(4))}),
    ]


def route(outside: str, *, is_symmetric: bool) -> None:
    """Masquerade what leaves by an interface, and drop who calls from there."""
    flags = {"flags": ["NF_NAT_RANGE_PROTO_RANDOM_FULLY"]} if is_symmetric else {}
    rules = {
        "postrouting": [_interface(Meta.NFT_META_OIFNAME, outside), [genex("masq", flags)]],
        "forward": [_interface(Meta.NFT_META_IIFNAME, outside), _is_new(), verdict(DROP)],
        "input": [_interface(Meta.NFT_META_IIFNAME, outside), _is_new(), verdict(DROP)],
    }
    with NFTables() as nft:
        nft.table("add", name="router")
        for hook, expressions in rules.items():
            is_nat = hook == "postrouting"
            kind = {"type": "nat", "priority": AFTER_ROUTING} if is_nat else {"type": "filter"}
            nft.chain("add", table="router", name=hook, hook=hook, policy=ACCEPT, **kind)
            nft.rule("add", table="router", chain=hook, expressions=expressions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("outside")
    parser.add_argument("--symmetric", action="store_true")
    options = parser.parse_args()
    route(options.outside, is_symmetric=options.symmetric)
