/** Answers of upstreams that went wrong: their events, their JSON, their bytes. */
import { isObject, parseJson } from "../../lib/json/mod.ts";
import type { SoundAnswer } from "../e2e/fault/matrix/sound_answer.ts";
import type { Play } from "../e2e/fault/matrix/wire.ts";
import { chunk, END, head, typeOf } from "../e2e/fault/matrix/written.ts";
import type { Random } from "../support/random.ts";
import { changeBytes } from "./bytes.ts";
import { changedJson } from "./values.ts";

const ODD_FRAMES = [
  "data: [DONE]\n\n",
  "data:\n\n",
  ": comment\n\n",
  "event: error\ndata: {}\n\n",
  'data: {"error":null}\n\n',
  'data: {"error":{"message":5}}\n\n',
  'event: message_stop\ndata: {"type":"message_stop"}\n\n',
  'data: {"type":"response.completed","response":{}}\n\n',
  'data: {"type":"response.failed","response":{"error":null}}\n\n',
  'data: {"choices":[],"usage":{}}\n\n',
  'data: {"choices":[{"index":7,"delta":{"tool_calls":[{"index":-1}]}}]}\n\n',
  'data: {"type":"content_block_start","index":1e9,"content_block":{"type":"tool_use"}}\n\n',
  'data: {"candidates":[{"content":{"parts":[{"functionCall":{}}]},"finishReason":"TOOL"}]}\n\n',
  "id: 1\nretry: 0\n\n",
  "data: null\n\n",
  "\n\n\n",
];
const ODD_WHOLE = [
  "",
  "null",
  "[]",
  "{}",
  '{"error":{}}',
  '{"choices":[]}',
  '{"choices":[{}]}',
  '{"output":[{}]}',
  "\ufeff{}",
];
const ODD_STATUSES = [201, 202, 203, 206, 300, 400, 404, 409, 413, 418, 422, 429, 500, 503, 529];
const TYPES = ["text/event-stream", "application/json", "text/plain", "text/event-stream;charset=utf-16", ""];

/** Breaks a sound answer: the same chance gives the same answer. */
export function brokenAnswer(random: Random): Play {
  return async (line, content) => {
    const status = random.chance(0.1) ? random.pick(ODD_STATUSES) : 200;
    const type = random.chance(0.05) ? random.pick(TYPES) : typeOf(content)["content-type"];
    const bytes = content.stream ? brokenStream(content, random) : brokenWhole(content.whole, random);
    if (random.chance(0.7)) {
      const length = bytes.length + (random.chance(0.05) ? random.below(3) - 1 : 0);
      await line.send(
        head({ "content-type": type, "content-length": String(length) }).replace("200 OK", `${status} So`),
      );
      await line.send(bytes);
      return random.chance(0.9) ? "keep" : "close";
    }
    await line.send(head({ "content-type": type, "transfer-encoding": "chunked" }).replace("200 OK", `${status} So`));
    for (let at = 0; at < bytes.length;) {
      const size = 1 + random.below(700);
      await chunk(line, bytes.subarray(at, at + size));
      at += size;
    }
    if (random.chance(0.1)) return "close";
    await line.send(END);
    return "keep";
  };
}

function brokenStream({ opening, pieces, ending }: SoundAnswer, random: Random): Uint8Array {
  let frames = [...opening, ...pieces, ...ending];
  for (let times = random.below(4); times > 0; times--) frames = changeFrames(frames, random);
  const ended = random.chance(0.1) ? frames.map((frame) => frame.replaceAll("\n", "\r\n")) : frames;
  const bytes = new TextEncoder().encode(ended.join(""));
  return random.chance(0.15) ? changeBytes(bytes, random) : bytes;
}

/** Leaves out, repeats, moves, adds or changes one event. */
function changeFrames(frames: readonly string[], random: Random): string[] {
  const at = random.below(frames.length);
  const frame = frames[at];
  if (frame === undefined) return [random.pick(ODD_FRAMES)];
  const change = random.next();
  if (change < 0.15) return frames.toSpliced(at, 1);
  if (change < 0.25) return frames.toSpliced(at, 0, frame);
  if (change < 0.35) return frames.toSpliced(at, 1).toSpliced(random.below(frames.length), 0, frame);
  if (change < 0.5) return frames.toSpliced(at, 0, random.pick(ODD_FRAMES));
  return frames.with(at, frame.replace(/^data: (\{.*\})$/m, (_, text) => `data: ${changedText(text, random)}`));
}

function brokenWhole(text: string, random: Random): Uint8Array {
  const bytes = new TextEncoder().encode(random.chance(0.1) ? random.pick(ODD_WHOLE) : changedText(text, random));
  return random.chance(0.1) ? changeBytes(bytes, random) : bytes;
}

function changedText(text: string, random: Random): string {
  const value = parseJson(text);
  return isObject(value) ? changedJson(value, random) : text;
}
