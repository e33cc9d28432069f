/** Errors of upstreams. */
import { inTheMiddle } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import type { SoundAnswer } from "./sound_answer.ts";
import type { Play } from "./wire.ts";
import { send, sendMany, sendWhole } from "./written.ts";

const GIB = 1024 ** 3;

/** A status with the vendor's error body. */
const status = (code: number, headers: Record<string, string> = {}): Play => (line, answer) =>
  sendWhole(line, errorOf(answer, code), { status: code, headers: { "content-type": "application/json", ...headers } });

/** Gemini's names of statuses. */
const NAMED: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

function errorOf({ spoken, errorBody }: SoundAnswer, code: number): string {
  if (spoken !== "gemini") return errorBody;
  return JSON.stringify({ error: { code, message: "The upstream's own words", status: NAMED[code] ?? "INTERNAL" } });
}

/** Errors that the upstream itself reports. */
export const ERRORS: readonly WireFault[] = [
  {
    name: "an error first",
    about: "Status 200, and the first event is an error",
    play: (line, answer) =>
      send(line, { ...answer, opening: [answer.errorFrame], pieces: [], ending: [], whole: answer.errorBody }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "an error in the middle",
    about: "Status 200, and an error in the middle of the stream",
    play: inTheMiddle(({ errorFrame }) => errorFrame, ({ errorBody }) => errorBody),
    streamed: "error within",
    whole: 502,
  },
  { name: "status 400", about: "The upstream refuses the request", play: status(400), streamed: 400, whole: 400 },
  { name: "status 401", about: "The upstream refuses the key (401)", play: status(401), streamed: 502, whole: 502 },
  { name: "status 403", about: "The upstream forbids it (403)", play: status(403), streamed: 502, whole: 502 },
  {
    name: "status 429",
    about: "The upstream is at its limit, for 2 s",
    play: status(429, { "retry-after": "2" }),
    again: true,
    streamed: 429,
    whole: 429,
  },
  { name: "status 500", about: "The upstream fails", play: status(500), streamed: 502, whole: 502 },
  { name: "status 503", about: "The model's vendor is overloaded", play: status(503), streamed: 503, whole: 503 },
  {
    name: "status 500, a page",
    about: "The proxy before the upstream fails, in HTML",
    play: (line) => sendWhole(line, "<h1>Bad</h1>", { status: 500, headers: { "content-type": "text/html" } }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "status 599, nothing",
    about: "An unknown status, without a body",
    play: (line) => sendWhole(line, "", { status: 599, headers: {} }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "status 500, endless",
    about: "The upstream fails, with an error of 1 GiB",
    play: async (line) => {
      await line.send("HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
      await sendMany(line, "x", GIB);
      return "close";
    },
    floods: true,
    streamed: 502,
    whole: 502,
  },
  ...[301, 302, 307, 308].map((code): WireFault => ({
    name: `redirect ${code}`,
    about: `A redirect (${code}), which the gateway does not follow`,
    play: (line) => sendWhole(line, "", { status: code, headers: { location: "/elsewhere" } }),
    streamed: 502,
    whole: 502,
  })),
];
