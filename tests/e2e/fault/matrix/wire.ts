/** An upstream that plays the fault that a request names, over a plain socket. */
import {
  connectionOver,
  type FaultConnection,
  type RawRequest,
  RequestReader,
} from "../../../../lib/fault/connection.ts";
import type { Protocol } from "../../../../lib/protocols/canonical/types.ts";
import { type SoundAnswer, soundAnswer } from "./sound_answer.ts";

/** The end of a connection after an answer. "reset" needs a request with an unread byte. */
export type Then = "keep" | "close" | "reset";

/** Writes one answer. @throws if the peer has left */
export type Play = (line: FaultConnection, answer: SoundAnswer) => Promise<Then>;

/** The playable faults by name. */
export type Plays = Pick<ReadonlyMap<string, { play: Play; resets: boolean }>, "get">;

/** A running upstream. */
export interface Wire extends AsyncDisposable {
  url: string;
  /** Answers under way. */
  readonly busy: number;
  /** Connections that are open. */
  readonly open: number;
  /** Bytes that connections took. */
  readonly sent: number;
  /** Requests heard. */
  readonly heard: number;
}

/** A prompt that selects a fault. */
export function asking(fault: string): string {
  return `Hello. fault<${fault}>`;
}

/** Starts an upstream on a free port. `hasRead` resolves when the client has read some of the current answer. */
export function startWire(plays: Plays, hasRead: () => Promise<void> = () => Promise.resolve()): Wire {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const over = new AbortController();
  const connections = new Set<Deno.TcpConn>();
  const served = new Set<Promise<void>>();
  let busy = 0;
  let sent = 0;
  let heard = 0;

  async function serve(connection: Deno.TcpConn): Promise<void> {
    const reader = new RequestReader(connection);
    try {
      for (let then: Then = "keep"; then === "keep";) {
        const received = await reader.request();
        if (received === undefined) return;
        then = await answer(received, { connection, reader });
      }
    } catch {
      // The peer has left, or the upstream ends.
    } finally {
      connections.delete(connection);
      close(connection);
    }
  }

  async function answer(
    { request, isWhole }: { request: RawRequest; isWhole: boolean },
    { connection, reader }: { connection: Deno.TcpConn; reader: RequestReader },
  ): Promise<Then> {
    heard++;
    const name = /fault<([^>]*)>/.exec(request.body)?.[1] ?? "";
    const chosen = plays.get(name);
    if (chosen === undefined) throw new RangeError(`No such fault: ${name}`);
    const gone = new AbortController();
    const leave = () => gone.abort(new Error("The peer has gone"));
    over.signal.addEventListener("abort", leave, { once: true });
    if (!chosen.resets) {
      if (!isWhole) await reader.skipBody();
      void reader.whenClosed().then((gone) => gone && leave());
    }
    const line = connectionOver(connection, gone.signal);
    busy++;
    try {
      const counting: FaultConnection = {
        ...line,
        async send(text) {
          await line.send(text);
          sent += text.length;
        },
      };
      const sound = soundAnswer(spokenAt(request.path), isStream(request));
      return await chosen.play(counting, { ...sound, read: hasRead() });
    } finally {
      busy--;
      leave();
      over.signal.removeEventListener("abort", leave);
    }
  }

  const accepting = (async () => {
    for await (const connection of listener) {
      connections.add(connection);
      // Several writes arrive without delay: measured times are the gateway's.
      connection.setNoDelay(true);
      const serving = serve(connection);
      served.add(serving);
      void serving.then(() => served.delete(serving));
    }
  })();

  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    get busy() {
      return busy;
    },
    get open() {
      return connections.size;
    },
    get sent() {
      return sent;
    },
    get heard() {
      return heard;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      over.abort();
      for (const connection of connections) close(connection);
      await accepting;
      await Promise.all(served);
    },
  };
}

function spokenAt(path: string): Protocol {
  if (path.endsWith("/chat/completions")) return "chat";
  if (path.endsWith("/responses")) return "responses";
  return path.endsWith("/messages") ? "messages" : "gemini";
}

/** The last byte of most bodies is not read yet: it is a brace. */
function isStream({ path, body }: RawRequest): boolean {
  if (path.includes(":streamGenerateContent")) return true;
  return [body, `${body}}`].some((text) => {
    try {
      return JSON.parse(text).stream === true;
    } catch {
      return false;
    }
  });
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // It is closed already.
  }
}
