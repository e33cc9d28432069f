/** Checks of the responses protocol: answers, tools, and reasoning with its encrypted form. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { type Checks, expectThat, Mismatch, Skip } from "../check.ts";
import { HTTP_CHECKS } from "../http_checks.ts";
import { LONG, READY, SYSTEM } from "../prompts.ts";
import { type ProtocolChecks, type ProtocolClient, withClient } from "../protocol_client.ts";
import { checkCalls, checkDone, checkNames, checkStreamedSchema, checkSystem, sharedChecks } from "../shared_checks.ts";
import { checkUsage, type ResponseAnswer, type ResponseEvent, RESPONSES, TERMINAL } from "./forms.ts";

const STREAMS: ProtocolChecks<ResponseAnswer, ResponseEvent> = {
  "stream.names": checkNames,
  async "stream.numbers"(client) {
    (await client.readyEvents()).forEach(({ type, sequence_number }, index) =>
      expectThat(sequence_number === index, `sequence_number ${index} (${type})`, sequence_number)
    );
  },
  async "stream.begin"(client) {
    const all = await client.readyEvents();
    const [first] = all;
    expectThat(first?.type === "response.created", "response.created", first?.type);
    const count = all.filter(({ type }) => type === "response.created").length;
    expectThat(count === 1, "one response.created", `${count} of them`);
    const { status, output } = Object(first.response);
    expectThat(
      status === "in_progress" && Array.isArray(output),
      'a response with status "in_progress" and output',
      first.response,
    );
  },
  async "stream.end"(client) {
    const all = await client.readyEvents();
    const ends = all.filter(({ type }) => TERMINAL.includes(type));
    expectThat(ends.length === 1, "one event that ends", ends.map(({ type }) => type));
    expectThat(all.at(-1)?.type === "response.completed", "response.completed", all.at(-1)?.type);
  },
  "stream.done": checkDone,
  async "stream.items"(client) {
    const all = await client.readyEvents();
    const added = all.filter(({ type }) => type === "response.output_item.added");
    const done = all.filter(({ type }) => type === "response.output_item.done");
    added.forEach(({ output_index }, index) =>
      expectThat(output_index === index, `output_index ${index}`, output_index)
    );
    expectThat(added.length > 0, "response.output_item.added", "none");
    const positions = (list: ResponseEvent[]) =>
      list.map(({ output_index, item }) => `${output_index} ${Object(item).id}`);
    expectThat(
      String(positions(added)) === String(positions(done)),
      `done as added: ${positions(added)}`,
      positions(done).join(),
    );
  },
  async "stream.parts"(client) {
    /** Texts so far of parts that are not done. */
    const open = new Map<string, string>();
    let closed = 0;
    for (const { type, item_id, content_index, delta, text, part } of await client.readyEvents()) {
      const partId = `${item_id} ${content_index}`;
      const soFar = open.get(partId);
      if (type === "response.content_part.added") {
        expectThat(soFar === undefined, "each part added once", partId);
        open.set(partId, "");
      } else if (type === "response.output_text.delta") {
        expectThat(soFar !== undefined, "content_part.added before the text", type);
        open.set(partId, soFar + String(delta));
      } else if (type === "response.output_text.done") {
        expectThat(soFar === text, `the text ${JSON.stringify(soFar)}`, text as Json);
      } else if (type === "response.content_part.done") {
        const finalText = Object(part).text;
        expectThat(soFar !== undefined && (finalText === undefined || finalText === soFar), "the part's text", part);
        open.delete(partId);
        closed++;
      }
    }
    expectThat(open.size === 0 && closed > 0, "content_part.done of each part", `${open.size} open`);
  },
  async "stream.whole"(client) {
    const all = await client.readyEvents();
    const { output, body } = RESPONSES.aggregate(all);
    const done = all.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    expectThat(
      output.length > 0 && JSON.stringify(body.output) === JSON.stringify(done),
      "the items that were done",
      body.output,
    );
    const [{ id: first }] = [Object(all[0]?.response)];
    expectThat(body.id === first, `id ${first}`, body.id);
  },
  "stream.usage": async (client) => void checkUsage(RESPONSES.aggregate(await client.readyEvents()).usage),
  async "stream.alive"(client) {
    const unknown = (await client.readyEvents()).find(({ type }) => !type.startsWith("response.") && type !== "error");
    expectThat(unknown === undefined, "types that begin with response.", unknown?.type);
  },
};

type ResponsesClient = ProtocolClient<ResponseAnswer, ResponseEvent>;

/** Members that OpenAI's schema requires. */
const OPENAI_MEMBERS = [
  ...["error", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "temperature", "top_p"],
  ...["tool_choice", "tools"],
];

/** Members that the Open Responses suite requires in addition. */
const OPEN_RESPONSES_MEMBERS = [
  ...["completed_at", "previous_response_id", "truncation", "text", "presence_penalty", "frequency_penalty"],
  ...["top_logprobs", "reasoning", "max_output_tokens", "max_tool_calls", "store", "background", "service_tier"],
  ...["safety_identifier", "prompt_cache_key"],
];

function checkMembers(names: readonly string[], { body }: ResponseAnswer): void {
  const missing = names.filter((name) => !Object.hasOwn(body, name));
  if (missing.length > 0) {
    throw new Mismatch("every member, null where it has no value", `no ${missing.join(", ")}`);
  }
}

const ANSWERS: ProtocolChecks<ResponseAnswer, ResponseEvent> = {
  async "whole.form"(client) {
    const { finish, output } = await client.ready();
    expectThat(finish === "completed", 'status "completed"', finish);
    expectThat(output.some(({ type }) => type === "message"), "a message", output);
  },
  "whole.required": async (client) => checkMembers(OPENAI_MEMBERS, await client.ready()),
  "whole.open": async (client) => checkMembers(OPEN_RESPONSES_MEMBERS, await client.ready()),
  async instructions(client) {
    const { body: { instructions } } = await checkSystem(client, { instructions: SYSTEM });
    expectThat(instructions === SYSTEM, "the instructions", instructions);
  },
  async items(client) {
    const content = [{ type: "output_text", text: "Hello, Ada.", annotations: [] }];
    const input = [
      { role: "user", content: "My name is Ada." },
      { type: "message", role: "assistant", content },
      { type: "message", role: "user", content: [{ type: "input_text", text: READY }] },
    ];
    await client.ask(READY, { input });
  },
  back: async (client) => sendBack(client, await client.ready()),
  async "length.stream"(client) {
    const events = await client.events(LONG, await RESPONSES.limit(client));
    const { finish } = RESPONSES.aggregate(events);
    expectThat(finish === RESPONSES.cutFinish, RESPONSES.cutFinish, finish);
    const end = events.at(-1)?.type;
    expectThat(end === "response.incomplete", "response.incomplete", end);
  },
  "json.stream": checkStreamedSchema,
};

async function sendBack(client: ResponsesClient, { history }: ResponseAnswer, more: JsonObject = {}): Promise<void> {
  const question = { role: "user", content: READY };
  await client.ask(READY, { input: [question, ...history, question], ...more });
}

const TOOLS: ProtocolChecks<ResponseAnswer, ResponseEvent> = {
  async "tools.echo"(client) {
    const { tools } = (await client.forcedCall()).body;
    for (const tool of Array.isArray(tools) && tools.length > 0 ? tools : [undefined]) {
      const missing = ["type", "name", "description", "parameters", "strict"].filter((name) => !(name in Object(tool)));
      expectThat(missing.length === 0, `tools with ${missing.join(", ")}`, tool);
    }
  },
  async "tools.stream"(client) {
    const events = await client.parallelEvents();
    /** Arguments so far of calls that are not done, by `output_index`. */
    const open = new Map<unknown, string>();
    let calls = 0;
    for (const { type, output_index, item, delta, arguments: completeArguments } of events) {
      const soFar = open.get(output_index);
      if (type === "response.output_item.added" && Object(item).type === "function_call") {
        calls++;
        const { call_id, name } = Object(item);
        expectThat(typeof call_id === "string" && typeof name === "string", "call_id and name", item);
        open.set(output_index, String(Object(item).arguments ?? ""));
      } else if (type === "response.function_call_arguments.delta") {
        expectThat(soFar !== undefined, "the item before its arguments", type);
        open.set(output_index, soFar + String(delta));
      } else if (type === "response.function_call_arguments.done") {
        expectThat(soFar === completeArguments, `the arguments ${soFar}`, completeArguments);
      } else if (type === "response.output_item.done" && Object(item).type === "function_call") {
        expectThat(Object(item).arguments === soFar, `the arguments ${soFar}`, item);
        open.delete(output_index);
      }
    }
    if (calls === 0) throw new Skip("the model called nothing");
    expectThat(open.size === 0, "response.output_item.done of each call", `${open.size} open`);
    checkCalls(RESPONSES.aggregate(events).calls);
  },
};

/** Members that request reasoning. */
const REASON: JsonObject = { reasoning: { effort: "low", summary: "auto" }, include: ["reasoning.encrypted_content"] };

/** Requests an answer with reasoning, once for all checks. */
function requestReasoning(client: ResponsesClient): Promise<ResponseAnswer> {
  return client.once("reasoning", () => client.ask(READY, REASON, "reasoning"));
}

const REASONING: ProtocolChecks<ResponseAnswer, ResponseEvent> = {
  async "reasoning.whole"(client) {
    const { output, usage } = await requestReasoning(client);
    const types = output.map(({ type }) => type);
    const index = types.indexOf("reasoning");
    const item = output[index];
    const reasoningTokens = checkUsage(usage).output_tokens_details.reasoning_tokens;
    if (item?.type !== "reasoning") {
      if (reasoningTokens === 0) throw new Skip("the model did not reason");
      throw new Mismatch("a reasoning item", types.join());
    }
    expectThat(reasoningTokens > 0, "reasoning_tokens", usage);
    expectThat(index < types.indexOf("message"), "the reasoning before the message", types);
    if (typeof item.encrypted_content !== "string") {
      throw new Skip("it came without encrypted_content: the model's host gives none, or the gateway lost it");
    }
  },
  async "reasoning.stream"(client) {
    const open = new Set<string>();
    let deltas = 0;
    for (const { type, item_id, summary_index } of await client.events(READY, REASON, "reasoning")) {
      const partId = `${item_id} ${summary_index}`;
      if (type === "response.reasoning_summary_part.added") open.add(partId);
      if (type === "response.reasoning_summary_text.delta") {
        deltas++;
        expectThat(open.has(partId), "reasoning_summary_part.added before the text", type);
      }
      if (type === "response.reasoning_summary_part.done") open.delete(partId);
    }
    if (deltas === 0) throw new Skip("no summary was shown");
    expectThat(open.size === 0, "reasoning_summary_part.done of each part", `${open.size} open`);
  },
  async "reasoning.back"(client) {
    const answer = await requestReasoning(client);
    if (!answer.output.some(({ type }) => type === "reasoning")) throw new Skip("the model did not reason");
    await sendBack(client, answer, REASON);
  },
};

/** All checks of the responses protocol. */
export const RESPONSES_CHECKS: Checks = withClient(RESPONSES, {
  ...sharedChecks(RESPONSES),
  ...HTTP_CHECKS,
  ...ANSWERS,
  ...STREAMS,
  ...TOOLS,
  ...REASONING,
});
