"""Authorization of every DHT call in a run with an authority: a grant, and the key it names.

hivemind attaches the caller's grant and signature to each request, and the callee's to each
response; here they are checked against the authority's key. This covers the DHT's own calls and
nothing else: the averaging layer checks grants by itself, through `Membership.verify`.
"""

from hivemind.proto.auth_pb2 import AccessToken
from hivemind.utils.auth import TokenAuthorizerBase
from hivemind.utils.crypto import RSAPrivateKey

from training.access.grants import Grant, GrantError
from training.access.membership import Membership

LOOK_AGAIN_SECONDS = 90.0  # this long before the end of our own grant the file may hold a newer


class GrantAuthorizer(TokenAuthorizerBase):
    """Signs our calls with our grant, and refuses the calls of those who have none.

    Args:
        key: the peer's private key. membership: our access, renewed by the main process.
    """

    def __init__(self, key: RSAPrivateKey, membership: Membership) -> None:
        super().__init__(key)
        self.membership = membership

    async def get_token(self) -> AccessToken:
        """Our grant as hivemind carries it.

        Raises:
            GrantError: when it has expired: without access we neither call nor answer.
        """
        grant = self.membership.current().grant
        return AccessToken(
            username=grant.username,
            public_key=grant.peer_public_key.encode(),
            expiration_time=str(grant.expires),
            signature=grant.signature,
        )

    def is_token_valid(self, access_token: AccessToken) -> bool:
        """True if a grant holds now; hivemind checks that the caller has the key in it."""
        try:
            self.membership.check(_read(access_token, self.membership.run))
        except GrantError:
            return False
        return True

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:
        """True if it is time to look for a renewed grant."""
        left = _read(access_token, self.membership.run).seconds_left()
        return left < LOOK_AGAIN_SECONDS


def _read(token: AccessToken, run: str) -> Grant:
    """The grant in hivemind's form; raises GrantError when it is not shaped like one."""
    try:
        key, expires = token.public_key.decode(), int(token.expiration_time)
    except ValueError as error:
        raise GrantError("not shaped like a grant") from error
    return Grant(run, token.username, key, expires, token.signature)
