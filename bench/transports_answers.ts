/** Messages between the processes of `transports.ts`. */

/** One event of a stream, in a chunk of its own. */
export const EVENT = chunk(
  `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"}}]}\n\n`,
);

/** Events of a stream that comes at once. */
export const EVENTS_BURST = 200;
/** Events of a stream that takes its time, and the time between two of them, in milliseconds. */
export const EVENTS_PACED = 50;
export const PACE_MS = 20;

/** Head of every stream. */
export const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\nx-request-id: req_0123456789\r\ntransfer-encoding: chunked\r\n\r\n";

/** Answers that are the same each time, by their path. */
export const ANSWERS: Readonly<Record<string, string>> = {
  "/json1": whole(1_000),
  "/json60": whole(60_000),
  "/burst": `${STREAM_HEAD}${EVENT.repeat(EVENTS_BURST)}0\r\n\r\n`,
};

/** Bodies of the requests. */
export const BODIES = { small: body(1_000), large: body(60_000) } as const;

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function whole(bytes: number): string {
  const text = JSON.stringify({ id: "chatcmpl-1", choices: [{ message: { content: "x".repeat(bytes - 60) } }] });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_0123456789\r\nserver: fake\r\n` +
    `content-length: ${text.length}\r\n\r\n${text}`;
}

function body(bytes: number): string {
  return JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(bytes - 60) }] });
}
