/** Streams whose upstream takes its time even to begin: the client is kept awake, and told what comes of it. */
import { type GatewayError, toGatewayError } from "../errors.ts";
import { formatFrame } from "../server/sse.ts";
import type { Frame } from "../protocols/codec.ts";

/** A stream that may be late. */
export interface Late {
  /** The answer, when it has begun. */
  response: Promise<Response>;
  /** Bytes that say "still here" in the client's protocol. */
  heartbeat: string;
  /** Silence after which a heartbeat goes out, in milliseconds. */
  keepAliveMs: number;
  /** Headers of an answer that has not begun. */
  headers: () => Record<string, string>;
  /** Frames that tell the client, in its protocol, that there is no answer. */
  fail(error: GatewayError): Frame[];
  /** Called when the client leaves before the answer has begun. */
  leave(): void;
  /** Called where the answer fails and the client has left. */
  unanswered(): void;
}

/**
 * The answer itself where it begins in time. Else a stream that begins with heartbeats and goes on as the answer: from
 * then on an error is a part of the stream.
 * @throws what `response` is rejected with, where that happens in time
 */
export async function inTime(late: Late): Promise<Response> {
  const { response, keepAliveMs } = late;
  return await orSilence(response, keepAliveMs) ?? new Response(lateBody(late), { headers: late.headers() });
}

function lateBody({ response, heartbeat, keepAliveMs, fail, leave, unanswered }: Late): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let waited = true;
  let left = false;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  /** The answer's body; `undefined` while it has not begun. */
  async function begin(): Promise<ReadableStream<Uint8Array> | undefined> {
    const begun = waited ? undefined : await orSilence(response, keepAliveMs);
    waited = false;
    return begun?.body ?? undefined;
  }

  /** An answer that nobody has looked at is not begun at all, whether it comes before or after the client has left. */
  async function drop(): Promise<void> {
    leave();
    try {
      const { body } = await response;
      await body?.cancel();
    } catch {
      unanswered();
    }
  }

  // Where nobody asks for it any more, its failure is nobody's.
  response.catch(() => {});
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        if (reader === undefined) {
          const begun = await begin();
          if (left) return;
          reader = begun?.getReader();
        }
        if (reader === undefined) return controller.enqueue(encoder.encode(heartbeat));
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (thrown) {
        if (left) return;
        for (const frame of fail(toGatewayError(thrown))) controller.enqueue(encoder.encode(formatFrame(frame)));
        controller.close();
      }
    },
    async cancel() {
      left = true;
      await (reader === undefined ? drop() : reader.cancel());
    },
  }, { highWaterMark: 0 });
}

/** What a promise resolves to; `undefined` where that takes longer. */
async function orSilence<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
