import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { soon } from "../support/soon.ts";
import { failureOf, request } from "../upstreams/transports.ts";
import { say, startRawUpstream } from "../upstream/raw.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const SECOND = `${OK}content-length: 4\r\n\r\nevil`;

/** Answers that may hide another one, or whose end is ambiguous: of each part that reads them, and each limit. */
const BROKEN: [name: string, wire: string][] = [
  ["a length and chunks", `${OK}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`],
  ["two lengths", `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nhello${SECOND}`],
  ["a coding that nobody asked for", `${OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  ["a space before the colon", `${OK}transfer-encoding : chunked\r\ncontent-length: 5\r\n\r\nhello`],
  ["bare LF", "HTTP/1.1 200 OK\ncontent-length: 5\n\nhello"],
  ["HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff"],
  ["another protocol", "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n"],
  ["a head without an end", `${OK}${`a: ${"x".repeat(10_000)}\r\n`.repeat(100)}`],
  ["a line without an end", `${OK}a: ${"x".repeat(1_000_000)}`],
  ["a chunk that is longer", `${OK}transfer-encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n`],
  ["an endless extension", `${OK}transfer-encoding: chunked\r\n\r\n5;${"x".repeat(100_000)}`],
];

Deno.test("malformed HTTP/1.1 is rejected at once, and its connection is closed", async () => {
  for (const [name, wire] of BROKEN) {
    for (const whole of [true, false]) {
      await using server = startRawUpstream(async (socket, { request }) => {
        if (request === 0) await say(socket, `${OK}content-length: 5\r\n\r\nhello`);
        else {
          await say(socket, wire).catch(() => {});
          // It stays open: only the answer itself reveals the fault.
          await socket.read(new Uint8Array(1));
        }
        return request === 0 ? "keep" : "close";
      });
      const transport = createHttp1Transport();
      await (await transport.send(request(server.url))).text(10);
      const read = async () => {
        const incoming = await transport.send(request(server.url));
        if (whole) return await incoming.text(1_000_000);
        while (await incoming.read() !== undefined);
      };
      const error = await soon(name, failureOf(read()));
      assert(error instanceof GatewayError && error.kind === "upstream", `${name}: ${error}`);
      assert(!/evil|127\.0\.0\.1/.test(error.message), error.message);
      await soon(`${name}: connection closed`, server.ended(1));
      transport.close();
      assertEquals([server.accepted, server.received.length], [1, 2], name);
    }
  }
});

Deno.test("answers without a body have none, whatever their headers say", async () => {
  const cases: [wire: string, connections: number][] = [
    ["HTTP/1.1 204 None\r\n\r\n", 1],
    ["HTTP/1.1 304 Same\r\ncontent-length: 100\r\n\r\n", 1],
    ["HTTP/1.1 204 None\r\ncontent-length: 4\r\n\r\nevil", 3],
  ];
  for (const [wire, connections] of cases) {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, wire);
      return "keep";
    });
    const transport = createHttp1Transport();
    for (let number = 0; number < 3; number++) {
      assertEquals(await (await transport.send(request(server.url))).text(10), "");
    }
    assertEquals(server.accepted, connections, wire);
    transport.close();
  }
});
