/** Request bodies of the benchmark: conversations and agents' requests of a given size, in three protocols. */
import { agentBody } from "./agents.ts";

/** Protocols of clients and upstreams. */
export type Protocol = "chat" | "responses" | "messages";

/** Bytes of a request's JSON, by name, and what its content is: plain text of a script, or an agent's request. */
export const SIZES = {
  "1k": { bytes: 1_000, script: "latin" },
  "5k-agent": { bytes: 5_000, script: "agent" },
  "60k-agent": { bytes: 60_000, script: "agent" },
  "250k-agent": { bytes: 250_000, script: "agent" },
  "4k": { bytes: 4_000, script: "latin" },
  "16k": { bytes: 16_000, script: "latin" },
  "60k": { bytes: 60_000, script: "latin" },
  "60k-cjk": { bytes: 60_000, script: "cjk" },
  "250k": { bytes: 250_000, script: "latin" },
  "1m": { bytes: 1_000_000, script: "latin" },
} as const;

/** Name of a size. */
export type Size = keyof typeof SIZES;

/** A request. */
export interface BodyOptions {
  protocol: Protocol;
  size: Size;
  model: string;
  stream: boolean;
  /** Messages of the conversation; absent: as many as its size needs. */
  turns?: number;
}

/** Text of one turn, with what JSON has to escape. */
const TURNS = {
  latin:
    `Please look at "lib/store/open.ts" again:\n\n\`\`\`ts\nconst path = url.pathname;\nif (path === "/") return;\n\`\`\`\n\n` +
    `The second call fails with ENOENT, although the folder is there. It did work yesterday. What I have tried is to ` +
    `create the folder first, to use an absolute path, and to wait for the first call. None of it helps.\n`,
  cjk:
    `请再看一遍这个文件:\n\n第二次调用失败了,错误是"找不到文件",虽然目录已经存在。昨天还能用。我试过先创建目录、使用绝对路径、` +
    `以及等待第一次调用完成,都没有用。\nこのファイルをもう一度見てください。二回目の呼び出しだけが失敗します。\n`,
} as const;

const SYSTEM = "You are a careful engineer. Answer with short sentences and show the code that you mean.";

/** Maximum text of one turn, in characters; a conversation has as many turns as its size needs. */
const TURN_CHARS = 1_500;

/** The body of a request. */
export function bodyOf({ protocol, size, model, stream, turns: count }: BodyOptions): string {
  const { bytes, script } = SIZES[size];
  if (script === "agent") return agentBody({ protocol, bytes, model, stream });
  const turns = turnsOf(TURNS[script], { bytes: Math.max(1, bytes - 220), ...(count !== undefined && { count }) });
  const common = { model, ...(stream && { stream: true }), temperature: 0.7 };
  switch (protocol) {
    case "chat":
      return JSON.stringify({
        ...common,
        ...(stream && { stream_options: { include_usage: true } }),
        max_tokens: 1024,
        messages: [{ role: "system", content: SYSTEM }, ...turns],
      });
    case "responses":
      return JSON.stringify({ ...common, max_output_tokens: 1024, instructions: SYSTEM, input: turns });
    case "messages":
      return JSON.stringify({ ...common, max_tokens: 1024, system: SYSTEM, messages: turns });
  }
}

/** A conversation of turns that are this long together, in bytes of JSON; without a count the user has the last word. */
function turnsOf(
  text: string,
  { bytes, count: wanted }: { bytes: number; count?: number },
): { role: "user" | "assistant"; content: string }[] {
  const bytesPerChar = new TextEncoder().encode(JSON.stringify(text)).length / text.length;
  const chars = Math.max(1, Math.round(bytes / bytesPerChar));
  const count = wanted ?? 2 * Math.floor(chars / TURN_CHARS / 2) + 1;
  const each = Math.max(1, Math.round(chars / count));
  const content = text.repeat(Math.ceil(each / text.length)).slice(0, each);
  return Array.from({ length: count }, (_, turn) => ({ role: turn % 2 === 0 ? "user" : "assistant", content }));
}
