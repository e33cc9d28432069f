import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { Http1Connection } from "../../lib/http1/pool.ts";
import { RequestWriter } from "../../lib/http1/request_writer.ts";

Deno.test("a piece written in several steps is complete and in order", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const [socket, peer] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  // More than the buffers of a connection hold.
  const first = new Uint8Array(20_000_000);
  for (let index = 0; index < first.length; index++) first[index] = index % 251;
  const second = new Uint8Array([251, 252, 253]);
  const sending = new RequestWriter({ broken() {} }, {
    connection: new Http1Connection(socket),
    packed: { first, second },
  });
  sending.settled.then(() => socket.close());
  const came = new Uint8Array(await new Response(peer.readable).arrayBuffer());
  assert(sending.isComplete);
  assertEquals(came.length, first.length + second.length);
  assert(Buffer.concat([first, second]).equals(came));
});
