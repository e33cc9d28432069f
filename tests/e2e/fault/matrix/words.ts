/** Faults of the content. */
import { inTheMiddle, SOME } from "./broken.ts";
import type { WireFault } from "./fault.ts";
import type { SoundAnswer } from "./sound_answer.ts";
import { send, sendWhole, typeOf } from "./written.ts";

function isOpenai({ spoken }: SoundAnswer): boolean {
  return spoken === "chat" || spoken === "responses";
}

/** Well-formed answers that are empty or nonsense. */
export const WORDS: readonly WireFault[] = [
  {
    name: "half an event",
    about: "The answer ends properly within an event",
    play: inTheMiddle((answer) => answer.pieces[SOME]?.slice(0, 20) ?? "", (answer) => answer.whole.slice(0, 40)),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "no end",
    about: "All of the text, and no end of the answer",
    play: (line, answer) => send(line, { ...answer, ending: [], whole: answer.whole.slice(0, -1) }),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "garbage first",
    about: "The first event is not JSON",
    play: (line, answer) => send(line, { ...answer, opening: ["data: {garbage\n\n"], whole: "{garbage" }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "garbage in the middle",
    about: "An event in the middle is not JSON",
    play: inTheMiddle(() => "data: {garbage\n\n", (answer) => answer.whole.replace(":", ";")),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "wrong bytes",
    about: "Bytes that are not UTF-8, and NUL, in the middle",
    play: inTheMiddle(
      () => Uint8Array.of(100, 97, 116, 97, 58, 32, 0xff, 0xfe, 0, 0xc3, 0x28, 10, 10),
      () => Uint8Array.of(0x7b, 0xff, 0xfe, 0, 0xc3, 0x28, 0x7d),
    ),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "no object",
    about: "JSON that is not an object",
    play: inTheMiddle(() => "data: [1]\n\n", () => "[1]"),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "deep JSON",
    about: "100,000 brackets within each other",
    play: inTheMiddle(() => `data: ${"[".repeat(100_000)}\n\n`, () => "[".repeat(100_000)),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "deep JSON, closed",
    about: "An object with 50,000 arrays within each other",
    play: inTheMiddle(
      () => `data: {"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}\n\n`,
      () => `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`,
    ),
    streamed: "error within",
    whole: 502,
  },
  {
    name: "events of nothing",
    about: "Events without data in between, and comments as data as some chat hosts have them: harmless",
    play: (line, answer) => {
      const nothing = ["event: x\ndata:\n\n", ...(isOpenai(answer) ? ["data: : wait\n\n"] : [])];
      return send(line, { ...answer, pieces: answer.pieces.flatMap((piece) => [...nothing, piece]) });
    },
    streamed: "answer",
    whole: "answer",
  },
  {
    name: "another protocol",
    about: "The answer of another protocol",
    play: (line, answer) =>
      send(line, {
        ...answer,
        opening: ['data: {"hello":"world"}\n\n'],
        pieces: [],
        ending: [],
        whole: '{"hello":"world"}',
      }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "empty",
    about: "Status 200 and nothing else",
    play: (line, answer) => sendWhole(line, "", { headers: typeOf(answer) }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "status 204",
    about: "Status 204, which has no body",
    play: async (line) => (await line.send("HTTP/1.1 204 No Content\r\n\r\n"), "keep"),
    streamed: 502,
    whole: 502,
  },
  {
    name: "a page",
    about: "A page of HTML with status 200",
    play: (line) => sendWhole(line, "<!doctype html><title>Hi</title>", { headers: { "content-type": "text/html" } }),
    streamed: 502,
    whole: 502,
  },
  {
    name: "the other kind",
    about: "A whole answer where a stream was asked for, and a stream in place of a whole answer",
    play: (line, answer) => send(line, { ...answer, stream: !answer.stream }),
    streamed: 502,
    whole: 502,
  },
];
