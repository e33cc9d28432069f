/** A real upstream whose answers are made step by step, while a test looks on. */

/** One request as it arrived. */
export interface Asked {
  body: Record<string, unknown>;
  /** Its body asks for a stream. */
  stream: boolean;
  /** Resolves when the caller has gone before the answer's end. */
  gone: Promise<void>;
}

/** A step of an answer: a text to send, or something to wait for. */
export type Step = string | Promise<unknown>;

/** An answer that is made while it is sent. */
export interface Said {
  status?: number;
  headers?: Record<string, string>;
  /** Waited for before the head. */
  before?: Promise<unknown>;
  steps: Iterable<Step>;
  /** True: the connection breaks off instead of an end. */
  cut?: boolean;
}

/** A running upstream. */
export interface Stepped extends AsyncDisposable {
  /** Such as `http://127.0.0.1:40123`. */
  url: string;
  asked: Asked[];
}

/** Starts an upstream that answers as it is told. */
export function startStepped(answer: (asked: Asked) => Said): Stepped {
  const asked: Asked[] = [];
  /** Whatever an answer waits for, it does not keep the server from ending. */
  const closing = Promise.withResolvers<void>();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const gone = Promise.withResolvers<void>();
    request.signal.addEventListener("abort", () => gone.resolve(), { once: true });
    const body = await request.json();
    const one = { body, stream: body.stream === true, gone: gone.promise };
    asked.push(one);
    const { status = 200, headers, before, steps, cut = false } = answer(one);
    await Promise.race([before, closing.promise]);
    const wait = (promise: Promise<unknown>) => Promise.race([promise, closing.promise, gone.promise]);
    return new Response(bodyOf(steps, { cut, wait, onCancel: gone.resolve }), {
      status,
      headers: headers ?? { "content-type": one.stream && status === 200 ? "text/event-stream" : "application/json" },
    });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    asked,
    [Symbol.asyncDispose]() {
      closing.resolve();
      return server.shutdown();
    },
  };
}

function bodyOf(
  steps: Iterable<Step>,
  { cut, wait, onCancel }: {
    cut: boolean;
    wait: (promise: Promise<unknown>) => Promise<unknown>;
    onCancel: () => void;
  },
): ReadableStream<Uint8Array> {
  const iterator = steps[Symbol.iterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = iterator.next();
        if (done === true) return cut ? controller.error(new Error("Cut by the test")) : controller.close();
        if (typeof value === "string") return controller.enqueue(encoder.encode(value));
        await wait(value);
      }
    },
    cancel: onCancel,
  }, { highWaterMark: 0 });
}
