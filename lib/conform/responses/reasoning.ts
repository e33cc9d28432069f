/** Responses: reasoning, and its encrypted form in the next request. */
import type { JsonObject } from "../../json/mod.ts";
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { READY } from "../prompts.ts";
import { checkUsage, readEvents, readWhole, type ResponseAnswer, RESPONSES } from "./forms.ts";

const THINK: JsonObject = { reasoning: { effort: "low", summary: "auto" }, include: ["reasoning.encrypted_content"] };

function thought(context: SuiteContext): Promise<ResponseAnswer> {
  return context.once("responses reasoning", async () => {
    const body = RESPONSES.body(context, READY, THINK);
    return readWhole(await context.good({ path: context.path("responses"), body }, "reasoning"));
  });
}

/** Checks of reasoning. */
export const RESPONSES_REASONING: Checks = {
  async "reasoning.whole"(context) {
    const { output, usage } = await thought(context);
    const at = output.findIndex(({ type }) => type === "reasoning");
    const item = output[at];
    const counted = checkUsage(usage).output_tokens_details.reasoning_tokens;
    if (item?.type !== "reasoning") {
      if (counted === 0) throw new Skip("the model did not reason");
      must(false, { expected: "a reasoning item", seen: output.map(({ type }) => type) });
    }
    must(counted > 0, { expected: "reasoning_tokens", seen: usage });
    must(at < output.findIndex(({ type }) => type === "message"), {
      expected: "the reasoning before the message",
      seen: output.map(({ type }) => type),
    });
    if (typeof item.encrypted_content !== "string") {
      throw new Skip("it came without encrypted_content: the model's host gives none, or the gateway lost it");
    }
  },
  async "reasoning.stream"(context) {
    const body = RESPONSES.body(context, READY, { ...THINK, ...streaming("responses") });
    const events = readEvents(await context.stream({ path: context.path("responses"), body }, "reasoning"));
    const open = new Set<string>();
    let shown = 0;
    for (const { type, item_id, summary_index } of events) {
      const place = `${item_id} ${summary_index}`;
      if (type === "response.reasoning_summary_part.added") open.add(place);
      if (type === "response.reasoning_summary_text.delta") {
        shown++;
        must(open.has(place), { expected: "reasoning_summary_part.added before the text", seen: type });
      }
      if (type === "response.reasoning_summary_part.done") open.delete(place);
    }
    if (shown === 0) throw new Skip("no summary was shown");
    must(open.size === 0, { expected: "reasoning_summary_part.done of each part", seen: `${open.size} open` });
  },
  async "reasoning.back"(context) {
    const { body, output } = await thought(context);
    if (!output.some(({ type }) => type === "reasoning")) throw new Skip("the model did not reason");
    const items = Array.isArray(body.output) ? body.output : [];
    const input = [{ role: "user", content: READY }, ...items, { role: "user", content: READY }];
    const again = { model: context.subject.model, input, store: false, ...THINK };
    await context.good({ path: context.path("responses"), body: again }, "reasoning");
  },
};
