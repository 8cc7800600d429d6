"""`python forward.py PORT HOST TARGET`: 127.0.0.1:PORT leads to HOST:TARGET.

A run file names its web host by https, or by http on this machine: in a network namespace, this
stands in for the former.
"""

import asyncio
import sys
from contextlib import closing, suppress


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer), suppress(OSError):
        while piece := await reader.read(2**16):
            writer.write(piece)
            await writer.drain()


async def main(port: int, host: str, target: int) -> None:
    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    server = await asyncio.start_server(lead, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
