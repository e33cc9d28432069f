/** A fake upstream that writes scripted bytes to its connections, also those that no real server sends. */
import { Buffer } from "node:buffer";

/** One request, and its place. */
export interface RawRequest {
  head: string;
  body: string;
  /** Number of its connection among all, from 0. */
  connection: number;
  /** Its number on that connection, from 0. */
  request: number;
}

/** The end of a connection after an answer: "reset" gives a peer that still sends an error. */
export type Then = "keep" | "close" | "reset";

/** Answers one request; the connection is reset unless the result says otherwise. */
export type RawPlay = (socket: Deno.TcpConn, request: RawRequest) => Promise<Then | void>;

/** A running server. */
export interface RawUpstream extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  port: number;
  /** Every request that arrived completely. */
  received: RawRequest[];
  /** Connections accepted so far. */
  accepted: number;
  /** Connections that are open. */
  open: number;
  /** Resolves when this number of connections has ended. */
  ended(count: number): Promise<void>;
  /** Closes every connection, as one side may at any time. */
  hangUp(): void;
}

const encoder = new TextEncoder();

/** Writes text, one byte per character. */
export async function say(socket: Deno.TcpConn, text: string): Promise<void> {
  const encoded = encoder.encode(text);
  // Texts of ASCII are long now and then, others are not.
  const bytes = encoded.length === text.length ? encoded : Uint8Array.from(text, (char) => char.charCodeAt(0));
  for (let at = 0; at < bytes.length;) at += await socket.write(bytes.subarray(at));
}

/** Head of an answer that is sent in chunks. */
export const CHUNKED_EVENTS =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/** One chunk: the bytes of a text, one character each. */
export function chunk(text: string): string {
  const encoded = encoder.encode(text);
  const bytes = encoded.length === text.length ? text : binaryOf(encoded);
  return `${bytes.length.toString(16)}\r\n${bytes}\r\n`;
}

/** Starts a server on a free port of this machine. */
export function startRawUpstream(play: RawPlay, hostname = "127.0.0.1"): RawUpstream {
  const listener = Deno.listen({ hostname, port: 0 });
  const sockets = new Set<Deno.TcpConn>();
  const running: Promise<void>[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let ends = 0;
  const name = hostname.includes(":") ? `[${hostname}]` : hostname;
  const server: RawUpstream = {
    url: `http://${name}:${listener.addr.port}`,
    port: listener.addr.port,
    received: [],
    accepted: 0,
    get open() {
      return sockets.size;
    },
    ended(count) {
      if (ends >= count) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    hangUp() {
      for (const socket of sockets) close(socket);
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      server.hangUp();
      await accepting;
      await Promise.all(running);
    },
  };

  async function serve(socket: Deno.TcpConn, connection: number): Promise<void> {
    const inbox = createInbox(socket);
    for (let request = 0;; request++) {
      const message = await inbox.next();
      if (message === undefined) return;
      const received = { ...message, connection, request };
      server.received.push(received);
      const then = await play(socket, received);
      if (then === "keep") continue;
      if (then === "close") {
        await socket.closeWrite();
        while (await socket.read(new Uint8Array(1024)) !== null);
      }
      // Closing a connection with unread data resets it.
      return;
    }
  }

  const accepting = (async () => {
    for await (const socket of listener) {
      const connection = server.accepted++;
      sockets.add(socket);
      running.push(
        serve(socket, connection).catch(() => {}).finally(() => {
          sockets.delete(socket);
          close(socket);
          ends++;
          for (const { count, resolve } of waiting) if (ends >= count) resolve();
        }),
      );
    }
  })();
  return server;
}

/** Bytes as text, one character each. */
function binaryOf({ buffer, byteOffset, length }: Uint8Array<ArrayBuffer>): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

function close(socket: Deno.TcpConn): void {
  try {
    socket.close();
  } catch {
    // It is closed already.
  }
}

function createInbox(socket: Deno.TcpConn): { next(): Promise<{ head: string; body: string } | undefined> } {
  const buffer = new Uint8Array(65_536);
  let text = "";
  async function more(): Promise<boolean> {
    const size = await socket.read(buffer);
    if (size === null) return false;
    text += binaryOf(buffer.subarray(0, size));
    return true;
  }
  return {
    async next() {
      while (!text.includes("\r\n\r\n")) if (!(await more())) return undefined;
      const end = text.indexOf("\r\n\r\n") + 4;
      const head = text.slice(0, end);
      if (/^transfer-encoding: chunked\r$/im.test(head)) {
        while (!text.slice(end).includes("\r\n0\r\n\r\n") && !text.slice(end).startsWith("0\r\n\r\n")) {
          if (!(await more())) return undefined;
        }
        let body = "";
        let at = end;
        while (true) {
          const size = parseInt(text.slice(at), 16);
          at = text.indexOf("\r\n", at) + 2;
          if (size === 0) break;
          body += text.slice(at, at + size);
          at += size + 2;
        }
        text = text.slice(at + 2);
        return { head, body };
      }
      const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      while (text.length < end + length) if (!(await more())) return undefined;
      const body = text.slice(end, end + length);
      text = text.slice(end + length);
      return { head, body };
    },
  };
}
