/** Messages: thinking, and its signature in the next request. */
import type { JsonObject } from "../../json/mod.ts";
import { type Checks, Mismatch, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { READY } from "../prompts.ts";
import { type MessageAnswer, type MessageBlock, MESSAGES, readEvents, readWhole } from "./forms.ts";

/** Newer models have adaptive thinking, older ones a budget. */
const MODES: readonly [JsonObject, JsonObject] = [
  { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "low" } },
  { thinking: { type: "enabled", budget_tokens: 1024 } },
];

/** The answer does not show which of the two is the cause. */
const UNSIGNED = "it came without a signature: the model's host gives none, or the gateway lost it";

const ROOM = { max_tokens: 4096 };

interface ThinkingAnswer {
  answer: MessageAnswer;
  mode: JsonObject;
}

/** An answer with thinking, in the mode that the model accepts. */
function thinkingAnswer(context: SuiteContext): Promise<ThinkingAnswer> {
  return context.once("messages thinking", async () => {
    const ask = (mode: JsonObject) => ({
      path: context.path("messages"),
      body: MESSAGES.body(context, READY, { ...ROOM, ...mode }),
    });
    const [adaptive, manual] = MODES;
    try {
      return { answer: readWhole(await context.good(ask(adaptive))), mode: adaptive };
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error;
      return { answer: readWhole(await context.good(ask(manual), "reasoning")), mode: manual };
    }
  });
}

function isThought({ type }: MessageBlock): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

/** Checks of thinking. */
export const MESSAGES_THINKING: Checks = {
  async "thinking.whole"(context) {
    const { content } = (await thinkingAnswer(context)).answer;
    const at = content.findIndex(isThought);
    const block = content[at];
    if (block === undefined) throw new Skip("the model did not think");
    must(at === 0, { expected: "thinking first", seen: content.map(({ type }) => type) });
    if (block.type === "thinking" && block.signature === "") throw new Skip(UNSIGNED);
  },
  async "thinking.stream"(context) {
    const { answer, mode } = await thinkingAnswer(context);
    if (!answer.content.some(({ type }) => type === "thinking")) throw new Skip("the model did not think");
    const body = MESSAGES.body(context, READY, { ...ROOM, ...mode, ...streaming("messages") });
    const events = readEvents(await context.stream({ path: context.path("messages"), body }));
    const start = events.find(({ content_block }) => Object(content_block).type === "thinking");
    if (start === undefined) throw new Skip("the model did not think this time");
    const own = events.filter(({ type, index }) => type.startsWith("content_block") && index === start.index);
    const kinds = own.map(({ type, delta }) => type === "content_block_delta" ? Object(delta).type : type);
    // Chat hosts send it with the end of the answer, after the block was closed.
    if (!kinds.includes("signature_delta")) {
      throw new Skip(UNSIGNED);
    }
    must(kinds.filter((kind) => kind === "signature_delta").length === 1, {
      expected: "one signature_delta",
      seen: kinds,
    });
    must(kinds.at(-2) === "signature_delta", { expected: "signature_delta before the stop", seen: kinds.slice(-3) });
  },
  async "thinking.back"(context) {
    const { answer, mode } = await thinkingAnswer(context);
    if (!answer.content.some(isThought)) throw new Skip("the model did not think");
    const messages = [
      { role: "user", content: READY },
      { role: "assistant", content: answer.body.content ?? [] },
      { role: "user", content: READY },
    ];
    const body = { ...MESSAGES.body(context, READY, { ...ROOM, ...mode }), messages };
    await context.good({ path: context.path("messages"), body });
  },
};
