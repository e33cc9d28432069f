// deno-lint-ignore-file no-console
/** The upstream of `transports.ts`: says prepared bytes, as fast as it can. Its address is its first line. */
import { ANSWERS, EVENT, EVENTS_PACED, PACE_MS, STREAM_HEAD } from "./transports_answers.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const prepared = new Map(Object.entries(ANSWERS).map(([path, text]) => [path, encoder.encode(text)]));
const head = encoder.encode(STREAM_HEAD);
const event = encoder.encode(EVENT);
const end = encoder.encode("0\r\n\r\n");

async function write(socket: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await socket.write(bytes.subarray(at));
}

async function pace(socket: Deno.TcpConn): Promise<void> {
  await write(socket, head);
  for (let number = 0; number < EVENTS_PACED; number++) {
    await new Promise((resolve) => setTimeout(resolve, PACE_MS));
    await write(socket, event);
  }
  await write(socket, end);
}

async function serve(socket: Deno.TcpConn): Promise<void> {
  socket.setNoDelay(true);
  const buffer = new Uint8Array(128 * 1024);
  while (true) {
    let size = 0;
    let requestBytes = Infinity;
    let path = "";
    while (size < requestBytes) {
      const read = await socket.read(buffer.subarray(size));
      if (read === null) return;
      size += read;
      if (requestBytes < Infinity) continue;
      const text = decoder.decode(buffer.subarray(0, Math.min(size, 2_048)));
      const after = text.indexOf("\r\n\r\n");
      if (after < 0) continue;
      path = text.slice(5, text.indexOf(" ", 5));
      requestBytes = after + 4 + Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    }
    const answer = prepared.get(path);
    if (answer !== undefined) await write(socket, answer);
    else if (path === "/paced") await pace(socket);
    else {
      // A stream that is open and says nothing more.
      await write(socket, head);
      await write(socket, event);
    }
  }
}

const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
console.log(`http://127.0.0.1:${listener.addr.port}`);
for await (const socket of listener) {
  serve(socket).catch(() => {}).finally(() => {
    try {
      socket.close();
    } catch {
      // It is closed already.
    }
  });
}
