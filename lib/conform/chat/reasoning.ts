/** Chat completions: reasoning and its signature, which OpenAI's own API does not return. */
import { isObject, type JsonObject } from "../../json/mod.ts";
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { READY } from "../prompts.ts";
import { CHAT, type ChatAnswer, checkUsage, readChunks, readWhole } from "./forms.ts";

const EFFORT: JsonObject = { reasoning_effort: "low" };

function thought(context: SuiteContext): Promise<ChatAnswer> {
  return context.once("chat reasoning", async () => {
    const body = CHAT.body(context, READY, EFFORT);
    return readWhole(await context.good({ path: context.path("chat"), body }, "reasoning"));
  });
}

/** Reasoning text under any of its usual names; "" if there is none. */
function textOf(holder: Record<string, unknown>): string {
  const { reasoning_content, reasoning, reasoning_details } = holder;
  const details = Array.isArray(reasoning_details) ? reasoning_details.filter(isObject) : [];
  const texts = [reasoning_content, reasoning, ...details.map(({ text, summary }) => text ?? summary)];
  return texts.find((text) => typeof text === "string" && text !== "") as string | undefined ?? "";
}

/** Checks of reasoning. */
export const CHAT_REASONING: Checks = {
  async "reasoning.whole"(context) {
    const { message, usage } = await thought(context);
    const counted = checkUsage(usage).completion_tokens_details?.reasoning_tokens ?? 0;
    if (textOf(message) === "" && counted === 0) throw new Skip("the model did not reason");
    must(counted > 0, { expected: "reasoning_tokens", seen: usage });
    return textOf(message) === "" ? "counted, but not shown" : undefined;
  },
  async "reasoning.stream"(context) {
    const stream = await context.stream({
      path: context.path("chat"),
      body: CHAT.body(context, READY, { ...EFFORT, ...streaming("chat") }),
    }, "reasoning");
    const deltas = readChunks(stream).flatMap(({ choices }) => choices).map(({ delta }) => delta);
    const isShown = (delta: Record<string, unknown>) =>
      [delta.reasoning_content, delta.reasoning].some((text) => typeof text === "string" && text !== "");
    const last = deltas.findLastIndex(isShown);
    if (last < 0) throw new Skip("no reasoning was shown");
    const first = deltas.findIndex(({ content }) => typeof content === "string" && content !== "");
    must(first < 0 || last < first, { expected: "all reasoning before the text", seen: `${last} after ${first}` });
  },
  async "reasoning.back"(context) {
    const { message } = await thought(context);
    if (textOf(message) === "" && !Array.isArray(message.reasoning_details)) throw new Skip("no reasoning was shown");
    const messages = [
      { role: "user", content: READY },
      { ...message },
      { role: "user", content: READY },
    ];
    const body = { model: context.subject.model, messages, ...EFFORT } as JsonObject;
    await context.good({ path: context.path("chat"), body }, "reasoning");
    return Array.isArray(message.reasoning_details) ? undefined : "there was no signature";
  },
};
