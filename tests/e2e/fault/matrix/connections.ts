/** Faults of connections: how they end, and how they fall silent. */
import { never, SOME, then } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import { streamOf } from "./sound_answer.ts";
import { begin, chunk, chunks } from "./written.ts";

/** Connections that are refused, reset or closed. */
export const CONNECTIONS: readonly WireFault[] = [
  { name: "nobody listens", about: "The connection is refused", streamed: 502, whole: 502 },
  {
    name: "closed at once",
    about: "The connection is closed when the request has come",
    play: () => Promise.resolve("close"),
    again: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "reset before the head",
    about: "The connection is reset before the head of the answer",
    play: () => Promise.resolve("reset"),
    resets: true,
    again: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "reset within the head",
    about: "It is reset within the head",
    play: async (line) => (await line.send("HTTP/1.1 200 OK\r\ncontent-ty"), "reset"),
    resets: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "closed within the head",
    about: "It ends within the head",
    play: async (line) => (await line.send("HTTP/1.1 200 OK\r\ncontent-ty"), "close"),
    streamed: 502,
    whole: 502,
  },
  {
    name: "reset after the head",
    about: "It is reset after the head, before any event",
    play: async (line, answer) => (await line.send(begin(answer)), "reset"),
    resets: true,
    streamed: 502,
    whole: 502,
  },
  {
    name: "reset in the middle",
    about: "It is reset in the middle of the answer",
    play: then(() => Promise.resolve("reset")),
    resets: true,
    streamed: "error within",
    whole: 502,
  },
  {
    name: "closed in the middle",
    about: "It ends in the middle, before the end that was announced",
    play: then(() => Promise.resolve("close")),
    streamed: "error within",
    whole: 502,
  },
];

/** Silence at every position of an answer. */
export const SILENCE: readonly WireFault[] = [
  { name: "silent", about: "No answer ever", play: never, stalls: true, streamed: 504, whole: 504 },
  {
    name: "silent within the head",
    about: "Silence within the head",
    play: async (line) => (await line.send("HTTP/1.1 200 OK\r\ncontent-ty"), await never(line)),
    stalls: true,
    streamed: 504,
    whole: 504,
  },
  {
    name: "silent after the head",
    about: "Silence after the head",
    play: async (line, answer) => (await line.send(begin(answer)), await never(line)),
    stalls: true,
    streamed: 504,
    whole: 504,
  },
  {
    name: "silent in the middle",
    about: "Silence in the middle of the answer",
    play: then(never),
    stalls: true,
    streamed: "error within",
    whole: 504,
  },
  {
    name: "silent within an event",
    about: "Silence within an event",
    play: then(async (line, answer) => {
      if (answer.stream) await chunk(line, answer.pieces[SOME]?.slice(0, 12) ?? "");
      return await never(line);
    }),
    stalls: true,
    streamed: "error within",
    whole: 504,
  },
  {
    name: "silent after the end",
    about: "The whole text, but the connection stays open without the last chunk",
    play: async (line, answer) => {
      const body = answer.stream ? streamOf(answer) : answer.whole;
      await chunks(line, [body], begin(answer));
      return await never(line);
    },
    stalls: true,
    streamed: "answer",
    whole: 504,
    // Its end is that of the answer.
    of: { gemini: { streamed: "error within" } },
  },
  {
    name: "one byte at a time",
    about: "One byte every 20 ms: never silent for long, never done",
    play: async (line, answer) => {
      await line.send(begin(answer));
      for (const byte of new TextEncoder().encode(answer.stream ? streamOf(answer) : answer.whole)) {
        await line.wait(20);
        await chunk(line, Uint8Array.of(byte));
      }
      return await never(line);
    },
    stalls: true,
    streamed: 504,
    whole: 504,
  },
  {
    name: "interim answers, then silence",
    about: "Three times 100 Continue, and nothing after them",
    play: async (line) => (await line.send("HTTP/1.1 100 Continue\r\n\r\n".repeat(3)), await never(line)),
    stalls: true,
    streamed: 504,
    whole: 504,
  },
  {
    name: "comments alone",
    about: "Comments of event streams without end, no event (a whole answer: spaces)",
    play: async (line, answer) => {
      await line.send(begin(answer));
      for (;;) {
        await line.wait(20);
        await chunk(line, answer.stream ? ": wait\n\n" : " ");
      }
    },
    stalls: true,
    streamed: 504,
    whole: 504,
  },
];
