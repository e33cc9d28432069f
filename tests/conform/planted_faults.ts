/** Single faults, and exactly which checks must find each. */
import type { SuitePart } from "../../lib/conform/check.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { LONG } from "../../lib/conform/prompts.ts";
import { type Break, events, isPlain, onStatus, type ProxiedAnswer, toolEvents, whole } from "./faulty_proxy.ts";

/** One fault. */
export interface PlantedFault {
  name: string;
  part: SuitePart;
  /** Ids of the checks that fail, or are skipped although nothing is skipped without the fault. */
  finds: readonly string[];
  /** Creates a new instance of the fault for each run. */
  make: () => Break;
}

const without = (pattern: RegExp) => (list: string[]) => list.filter((event) => !pattern.test(event));
const swap = (from: RegExp, to: string) => (list: string[]) => list.map((event) => event.replace(from, to));
/** Replaces text in the events that match a pattern. */
const swapIn = (pattern: RegExp, ...[from, to]: [from: RegExp, to: string]) => (list: string[]) =>
  list.map((event) => pattern.test(event) ? event.replace(from, to) : event);
const twice = (pattern: RegExp) => (list: string[]) =>
  list.flatMap((event) => pattern.test(event) ? [event, event] : [event]);

/** Adds one token to the prompt and the total of a usage with these members. */
function moreTokens(prompt: string, completion: string, total: string) {
  const usage = new RegExp(`"${prompt}":(\\d+),"${completion}":(\\d+),"${total}":(\\d+)`);
  const one = (_: string, asked: string, answered: string, both: string) =>
    `"${prompt}":${+asked + 1},"${completion}":${answered},"${total}":${+both + 1}`;
  return (list: string[]) => list.map((event) => event.replace(usage, one));
}

/** Moves the first matching event to the front. */
const first = (pattern: RegExp) => (list: string[]) =>
  [...list].sort((a, b) => Number(pattern.test(b)) - Number(pattern.test(a)));

/** A function that makes faults of one part of the suite. */
function faultsOf(part: SuitePart) {
  return (name: string, finds: string[], make: Break | (() => Break)): PlantedFault => ({
    name: `${part}: ${name}`,
    part,
    finds: finds.map((id) => `${part}.${id}`),
    make: make.length === 0 ? make as () => Break : () => make as Break,
  });
}

const chat = faultsOf("chat");
const responses = faultsOf("responses");
const messages = faultsOf("messages");
const gemini = faultsOf("gemini");
const models = faultsOf("models");
const images = faultsOf("images");
const embeddings = faultsOf("embeddings");
const rerank = faultsOf("rerank");

function isPlainStream(passing: ProxiedAnswer): boolean {
  return isPlain(passing) && passing.request.stream === true;
}

/** A fault of a header of the plain stream. */
const streamHeader = (change: (headers: Headers) => void): Break => (passing) => {
  if (isPlainStream(passing)) change(passing.headers);
};

const CHAT: PlantedFault[] = [
  chat(
    "no usage in a whole answer",
    ["whole.usage", "system", "developer", "stream.same"],
    whole((body) => delete body.usage),
  ),
  chat(
    "a total that is no sum",
    ["whole.usage", "system", "developer", "stream.same"],
    whole((body) => Object.assign(Object(body.usage), { total_tokens: 1 })),
  ),
  chat("a wrong object", [
    "whole.form",
    "whole.nulls",
    "whole.usage",
    "whole.finish",
    "parts",
    "system",
    "developer",
    "stream.same",
  ], whole((body) => body.object = "text_completion")),
  chat("no refusal", ["whole.nulls"], whole((body) => delete Object(body.choices)[0].message.refusal)),
  chat(
    "a whole answer that ends with end_turn",
    ["whole.finish"],
    whole((body) => Object(body.choices)[0].finish_reason = "end_turn"),
  ),
  chat("no [DONE]", ["stream.done"], events(without(/\[DONE\]/))),
  chat("two [DONE]", ["stream.done"], events(twice(/\[DONE\]/))),
  chat("data without a space", ["stream.lines"], events(swap(/^data: /, "data:"))),
  chat("CRLF", ["stream.lines"], (passing) => {
    if (isPlainStream(passing)) passing.text = passing.text.replaceAll("\n", "\r\n");
  }),
  chat("a byte order mark before a stream", ["stream.lines"], (passing) => {
    if (isPlainStream(passing)) passing.text = `\ufeff${passing.text}`;
  }),
  chat("no blank line at the end", ["stream.lines", "stream.done"], (passing) => {
    if (isPlainStream(passing)) passing.text = passing.text.trimEnd();
  }),
  chat("ids on events", ["stream.lines"], events(swap(/^data/, "id: 1\ndata"))),
  chat(
    "the role in every delta",
    ["stream.role"],
    events(swap(/"delta":\{"content"/, '"delta":{"role":"assistant","content"')),
  ),
  chat("no role at all", ["stream.role"], events(swap(/"role":"assistant",?/, ""))),
  chat(
    "another id in the middle",
    ["stream.form"],
    events((list) => list.map((event, at) => at === 2 ? event.replace(/"id":"[^"]*"/, '"id":"x"') : event)),
  ),
  chat("two finish reasons", ["stream.finish"], events(twice(/"finish_reason":"stop"/))),
  chat(
    "text after the finish",
    ["stream.finish"],
    events((list) => {
      const text = list.filter((event) => /"content":"./.test(event));
      return list.filter((event) => event !== text.at(-1)).flatMap((event) =>
        /"finish_reason":"stop"/.test(event) ? [event, text.at(-1) ?? ""] : [event]
      );
    }),
  ),
  chat(
    "no usage in a stream",
    ["stream.usage", "stream.same"],
    events((list) => list.filter((event) => !/"usage":\{/.test(event))),
  ),
  chat("usage without a request for it", ["stream.no_usage"], (passing) => {
    if (!isPlain(passing) || passing.request.stream !== true || passing.request.stream_options !== undefined) return;
    const bare =
      'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{}}\n\n';
    passing.text = passing.text.replace("data: [DONE]", () => `${bare}data: [DONE]`);
  }),
  chat(
    "other tokens in a stream than in a whole answer",
    ["stream.same"],
    events(moreTokens("prompt_tokens", "completion_tokens", "total_tokens")),
  ),
  chat("keep-alives as data", [
    "stream.lines",
    "stream.form",
    "stream.role",
    "stream.finish",
    "stream.usage",
    "stream.no_usage",
    "stream.same",
  ], events((list) => [list[0] ?? "", "data: : keep-alive", ...list.slice(1)])),
  chat(
    "tool indices with a gap",
    ["tools.stream"],
    toolEvents(swap(/"tool_calls":\[\{"index":1/, '"tool_calls":[{"index":2')),
  ),
  chat(
    "tool indices from 1",
    ["tools.stream"],
    toolEvents(swap(/"tool_calls":\[\{"index":(\d)/, '"tool_calls":[{"index":1$1')),
  ),
  chat(
    "a call's name twice",
    ["tools.stream"],
    toolEvents(swap(/"function":\{"arguments"/, '"function":{"name":"get_weather","arguments"')),
  ),
  chat("a call without type", ["tools.stream"], toolEvents(swap(/"type":"function",/, ""))),
  chat(
    "calls that end with stop",
    ["tools.stream_finish"],
    toolEvents(swap(/"finish_reason":"tool_calls"/, '"finish_reason":"stop"')),
  ),
  chat(
    "a 401 of another form",
    ["error.key", "error.no_key"],
    onStatus(401, (passing) => passing.text = '{"detail":"Unauthorized"}'),
  ),
  chat(
    "a 401 that says the key",
    ["error.key"],
    onStatus(401, (passing) => {
      const key = passing.sent.get("authorization");
      passing.text = passing.text.replace(/"message":"/, `"message":"${key ?? ""} `);
    }),
  ),
  chat("403 for a wrong key", ["error.key", "error.no_key"], onStatus(401, (passing) => passing.status = 403)),
  chat(
    "errors without request id",
    ["error.request_id"],
    onStatus(401, ({ headers }) => headers.delete("x-request-id")),
  ),
  chat("500 for an unknown model", ["error.model", "error.early"], onStatus(404, (passing) => passing.status = 500)),
  chat("an error inside a stream of status 200", ["error.early"], (passing) => {
    if (passing.status !== 404 || passing.request.stream !== true) return;
    passing.status = 200;
    passing.headers.set("content-type", "text/event-stream");
    passing.text = `data: ${passing.text}\n\n`;
  }),
  chat("422 for what is missing", ["error.member"], (passing) => {
    if (passing.status === 400 && passing.request.model !== undefined) passing.status = 422;
  }),
  chat("500 for broken JSON", ["error.json"], (passing) => {
    if (passing.status === 400 && Object.keys(passing.request).length === 0) passing.status = 500;
  }),
  chat("500 for a large body", ["error.large"], onStatus(413, (passing) => passing.status = 500)),
  chat("405 without allow", ["error.method"], onStatus(405, ({ headers }) => headers.delete("allow"))),
  chat("500 for an unknown member", ["unknown"], (passing) => {
    if ("x_conform_unknown" in passing.request) passing.status = 500;
  }),
  chat("official members refused", ["known"], (passing) => {
    if ("metadata" in passing.request) passing.status = 400;
  }),
  chat("a stream of text/plain", ["stream.type"], streamHeader((headers) => headers.set("content-type", "text/plain"))),
  chat("a stream that may be cached", ["stream.cache"], streamHeader((headers) => headers.delete("cache-control"))),
  chat(
    "a stream that may be buffered",
    ["stream.buffering"],
    streamHeader((headers) => headers.delete("x-accel-buffering")),
  ),
  chat("a stream without request id", ["stream.request_id"], streamHeader((headers) => headers.delete("x-request-id"))),
  chat("a slot that a client who disconnected keeps", ["disconnect"], () => {
    let left = false;
    return (passing: ProxiedAnswer) => {
      if (left) passing.status = 503;
      left ||= JSON.stringify(passing.request).includes(LONG) && passing.request.max_completion_tokens === undefined;
    };
  }),
  chat("the stop sequence in the text", ["stop"], (passing) => {
    if ("stop" in passing.request) passing.text = passing.text.replace(/"content":"/, '"content":"HALT ');
  }),
  chat(
    "a cut answer that says stop",
    ["length.whole", "length.stream"],
    (passing) => passing.text = passing.text.replaceAll('"finish_reason":"length"', '"finish_reason":"stop"'),
  ),
  chat("JSON between fences", ["json.schema"], (passing) => {
    if (!("response_format" in passing.request) || passing.request.stream === true) return;
    if (Object(passing.request.response_format).type !== "json_schema") return;
    passing.text = passing.text.replace(/"content":"/, '"content":"```json ');
  }),
  chat("a signature that is lost on the way back", ["reasoning.back"], () => {
    return (passing: ProxiedAnswer) => {
      const messages = passing.request.messages;
      if (Array.isArray(messages) && messages.some((message) => "reasoning_details" in Object(message))) {
        passing.status = 400;
      }
    };
  }),
];

const RESPONSES: PlantedFault[] = [
  responses(
    "events out of order",
    ["stream.numbers", "stream.parts"],
    events((list) => {
      const at = list.findIndex((event) => event.includes("content_part.added"));
      const [part = "", delta = ""] = list.slice(at, at + 2);
      return [...list.slice(0, at), delta, part, ...list.slice(at + 2)];
    }),
  ),
  responses("created twice", ["stream.numbers", "stream.begin"], events(twice(/^event: response.created/))),
  responses("no created", ["stream.numbers", "stream.begin"], events(without(/^event: response.created/))),
  responses("no event lines", ["stream.names"], events(swap(/^event: .*\n/, ""))),
  responses("no sequence numbers", ["stream.numbers"], events(swap(/"sequence_number":\d+,?/, ""))),
  responses(
    "no completed",
    ["stream.end", "stream.whole", "stream.usage", "stream.same"],
    events(without(/^event: response.completed/)),
  ),
  responses(
    "no usage at the end",
    ["stream.usage", "stream.same"],
    events(swapIn(/^event: response.completed/, /"usage":\{.*?\}.*?\}.*?\}/, '"usage":null')),
  ),
  responses(
    "an empty output at the end",
    ["stream.whole"],
    events(
      swapIn(
        /^event: response.completed/,
        /"output":\[.*\],"parallel_tool_calls"/,
        '"output":[],"parallel_tool_calls"',
      ),
    ),
  ),
  responses("output_index from 1", ["stream.items"], events(swap(/"output_index":0/, '"output_index":1'))),
  responses(
    "an item that is never done",
    ["stream.numbers", "stream.items", "stream.whole"],
    events(without(/^event: response.output_item.done/)),
  ),
  responses("no [DONE]", ["stream.done"], events(without(/\[DONE\]/))),
  responses(
    "keepalive events",
    ["stream.numbers", "stream.alive"],
    events((list) => [list[0] ?? "", 'event: keepalive\ndata: {"type":"keepalive"}', ...list.slice(1)]),
  ),
  responses("missing members", ["whole.required"], whole((body) => delete body.incomplete_details)),
  responses("missing members of Open Responses", ["whole.open"], whole((body) => delete body.truncation)),
  responses("an id of another kind", [
    "whole.form",
    "whole.required",
    "whole.open",
    "whole.usage",
    "instructions",
    "back",
    "stream.same",
  ], whole((body) => body.id = "chatcmpl-1")),
  responses("a cut answer that says completed", ["length.whole", "length.stream"], (passing) => {
    if ("max_output_tokens" in passing.request) {
      passing.text = passing.text.replaceAll('"status":"incomplete"', '"status":"completed"');
    }
  }),
  responses("an echo without tools", ["tools.echo"], (passing) => {
    if (passing.request.stream !== true) passing.text = passing.text.replace(/"tools":\[\{.*?\}\](?=,")/, '"tools":[]');
  }),
  responses("arguments that are no JSON", ["tools.forced"], (passing) => {
    if (typeof passing.request.tool_choice === "object" && passing.request.stream !== true) {
      passing.text = passing.text.replace(/"arguments":"\{/, '"arguments":"(');
    }
  }),
  responses(
    "arguments whose pieces lack one",
    ["tools.stream"],
    toolEvents((list) => {
      const at = list.findIndex((event) => event.startsWith("event: response.function_call_arguments.delta"));
      return list.filter((_, index) => index !== at);
    }),
  ),
  responses("no encrypted_content", ["reasoning.whole (skipped)"], (passing) => {
    if ("reasoning" in passing.request && passing.request.stream !== true) {
      passing.text = passing.text.replace(/"encrypted_content":"[^"]*",?/, "").replace(/,\}/g, "}");
    }
  }),
];

const MESSAGES: PlantedFault[] = [
  messages("two starts", ["stream.begin"], events(twice(/^event: message_start/))),
  messages("no event lines", ["stream.names"], events(swap(/^event: .*\n/, ""))),
  messages(
    "no usage at the start",
    ["stream.start_usage"],
    events(swapIn(/^event: message_start/, /"usage":\{[^}]*(\{[^}]*\}[^}]*)*\}/, '"other":{}')),
  ),
  messages("an index with a gap", ["stream.blocks", "stream.same"], events(swap(/"index":0/, '"index":1'))),
  messages("a block that never stops", ["stream.blocks"], events(without(/^event: content_block_stop/))),
  messages(
    "the stop before its block's end",
    ["stream.blocks", "stream.delta"],
    events((list) => {
      const at = list.findIndex((event) => event.startsWith("event: message_delta"));
      return [...list.slice(0, at - 1), list[at] ?? "", list[at - 1] ?? "", ...list.slice(at + 1)];
    }),
  ),
  messages("no stop reason", ["stream.delta"], events(swap(/"stop_reason":"end_turn"/, '"stop_reason":null'))),
  messages("no message_stop", ["stream.end"], events(without(/^event: message_stop/))),
  messages("message_delta first", ["stream.begin", "stream.delta"], events(first(/^event: message_delta/))),
  messages(
    "an error of OpenAI's form",
    ["error.key", "error.no_key"],
    onStatus(
      401,
      (passing) => passing.text = '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}',
    ),
  ),
  messages(
    "another request id header",
    ["error.request_id"],
    onStatus(401, ({ headers }) => headers.delete("request-id")),
  ),
  messages(
    "calls that stop with end_turn",
    ["tools.stop", "tools.stream"],
    (passing) => passing.text = passing.text.replaceAll('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'),
  ),
  messages(
    "an input at the start of a call",
    ["tools.stream"],
    toolEvents(swap(/"input":\{\}/, '"input":{"city":"Rome"}')),
  ),
  messages("no x-api-key beside the bearer", ["credential"], (passing) => {
    if (passing.sent.has("authorization") && passing.status === 200) passing.status = 401;
  }),
  messages("the newest version refused", ["version"], (passing) => {
    if (passing.sent.get("anthropic-version") === "2026-10-21") passing.status = 400;
  }),
  messages("a stop sequence that is not named", ["stop"], (passing) => {
    if ("stop_sequences" in passing.request) {
      passing.text = passing.text.replace('"stop_sequence":"HALT"', '"stop_sequence":null');
    }
  }),
  messages("a count that forgets tools", ["count"], (passing) => {
    if (passing.path.includes("count_tokens") && "tools" in passing.request) passing.text = '{"input_tokens":3}';
  }),
  messages("thinking without signature", ["thinking.whole (skipped)"], (passing) => {
    if ("thinking" in passing.request && passing.request.stream !== true) {
      passing.text = passing.text.replace(/"signature":"[^"]*"/, '"signature":""');
    }
  }),
  messages("two signatures", ["thinking.stream"], (passing) => {
    if ("thinking" in passing.request && passing.request.stream === true) {
      passing.text = passing.text.replace(/event: content_block_delta\ndata: [^\n]*signature_delta[^\n]*\n\n/, "$&$&");
    }
  }),
];

/** A fault of Gemini's requests with a member of `generationConfig`. */
const configured = (name: string, change: (passing: ProxiedAnswer) => void): Break => (passing) => {
  if (name in Object(passing.request.generationConfig)) change(passing);
};

const GEMINI: PlantedFault[] = [
  gemini("a list of models without their prefix", ["models"], (passing) => {
    if (passing.path.startsWith("/v1beta/models?")) passing.text = passing.text.replaceAll('"models/', '"');
  }),
  gemini("a model without methods", ["model"], (passing) => {
    if (passing.path === "/v1beta/models/sluice/echo") {
      passing.text = passing.text.replace('["generateContent","countTokens"]', "[]");
    }
  }),
  gemini("an answer without parts", [
    "whole.form",
    "whole.usage",
    "whole.finish",
    "parts",
    "spelling",
    "system",
    "stream.same",
  ], whole((body) => delete Object(body.candidates)[0].content.parts)),
  gemini(
    "an answer without text",
    ["whole.form"],
    whole((body) => Object(body.candidates)[0].content.parts = [{ text: "" }]),
  ),
  gemini(
    "a total that is no sum",
    ["whole.usage", "spelling", "system", "stream.same"],
    whole((body) => Object(body.usageMetadata).totalTokenCount = 1),
  ),
  gemini(
    "a whole answer that finishes with stop",
    ["whole.finish"],
    whole((body) => Object(body.candidates)[0].finishReason = "stop"),
  ),
  gemini("no key in the address", ["key"], (passing) => {
    if (passing.path.includes("key=")) passing.status = 401;
  }),
  gemini("snake case ignored", ["spelling"], (passing) => {
    if ("system_instruction" in passing.request) {
      passing.text = passing.text.replace(/"usageMetadata":\{[^}]*\}/, '"usageMetadata":' + ONE_TOKEN);
    }
  }),
  gemini("one content at most", ["parts", "thoughts.back", "tools.back", "tools.back_many"], (passing) => {
    if (Object(passing.request.contents).length > 1) passing.status = 400;
  }),
  gemini("a system instruction that is lost", ["system"], (passing) => {
    if ("systemInstruction" in passing.request) {
      passing.text = passing.text.replace(/"usageMetadata":\{[^}]*\}/, '"usageMetadata":' + ONE_TOKEN);
    }
  }),
  gemini(
    "a cut answer that says STOP",
    ["length.whole", "length.stream"],
    (passing) => passing.text = passing.text.replaceAll('"finishReason":"MAX_TOKENS"', '"finishReason":"STOP"'),
  ),
  gemini(
    "the stop sequence in the text",
    ["stop"],
    configured("stopSequences", (passing) => passing.text = passing.text.replace('"text":"', '"text":"HALT ')),
  ),
  gemini(
    "JSON between fences",
    ["json.schema", "json.stream"],
    configured("responseJsonSchema", (passing) => passing.text = passing.text.replace('"text":"', '"text":"```json ')),
  ),
  gemini("no images", ["image"], (passing) => {
    if (JSON.stringify(passing.request).includes("inlineData")) passing.status = 400;
  }),
  gemini("a count that forgets tools", ["count"], (passing) => {
    if ("tools" in Object(passing.request.generateContentRequest)) passing.text = '{"totalTokens":3}';
  }),
  gemini("event lines", ["stream.bare"], events(swap(/^data/, "event: message\ndata"))),
  gemini("a [DONE]", ["stream.bare"], events((list) => [...list, "data: [DONE]"])),
  gemini(
    "a last event without content",
    ["stream.content"],
    events(swapIn(/finishReason/, /"content":\{.*?\]\S*?\},/, "")),
  ),
  gemini("two finish reasons", ["stream.finish"], events(twice(/"finishReason"/))),
  gemini("no finish reason", ["stream.finish"], events(swap(/"finishReason":"STOP",/, ""))),
  gemini("no usage in a stream", ["stream.usage", "stream.same"], events(swap(/"usageMetadata":\{[^}]*\},/, ""))),
  gemini("events for everybody", ["stream.array"], (passing) => {
    if (passing.path.endsWith(":streamGenerateContent")) passing.headers.set("content-type", "text/event-stream");
  }),
  gemini(
    "other tokens in a stream than in a whole answer",
    ["stream.same"],
    events(moreTokens("promptTokenCount", "candidatesTokenCount", "totalTokenCount")),
  ),
  gemini("a tool that is not the forced one", ["tools.forced"], (passing) => {
    if (!/allowedFunctionNames/.test(JSON.stringify(passing.request))) return;
    passing.text = passing.text.replace('"name":"get_weather"', '"name":"get_time"');
  }),
  gemini("a text where a call is required", ["tools.required"], (passing) => {
    if (/"mode":"ANY"\}/.test(JSON.stringify(passing.request))) {
      passing.text = passing.text.replace(/\{"functionCall".*?\}\}/, '{"text":"No."}');
    }
  }),
  gemini("a call where none is allowed", ["tools.none"], (passing) => {
    if (/"mode":"NONE"/.test(JSON.stringify(passing.request))) {
      passing.text = passing.text.replace(/\{"text":"[^"]*"\}/, '{"functionCall":{"name":"get_time","args":{}}}');
    }
  }),
  gemini("one id for all calls", ["tools.parallel", "tools.stream"], (passing) => {
    if (!("toolConfig" in passing.request)) {
      passing.text = passing.text.replaceAll(/"id":"call_[^"]*"/g, '"id":"call_1"');
    }
  }),
  gemini("a streamed call in pieces", ["tools.stream"], toolEvents(swap(/"args":\{"city":"Paris"\}/, '"args":{}'))),
  gemini(
    "thoughts that are not counted",
    ["thoughts.whole"],
    configured(
      "thinkingConfig",
      (passing) => passing.text = passing.text.replace(/"usageMetadata":\{[^}]*\}/, '"usageMetadata":' + ONE_TOKEN),
    ),
  ),
  gemini(
    "a thought after the text",
    ["thoughts.stream"],
    configured("thinkingConfig", (passing) => {
      if (passing.request.stream === true) {
        const [thought = "", ...others] = passing.text.split(/(?<=\n\n)/);
        passing.text = [...others, thought].join("");
      }
    }),
  ),
  gemini("a signature that is lost on the way back", ["thoughts.back"], (passing) => {
    if (JSON.stringify(passing.request.contents ?? "").includes("thoughtSignature")) passing.status = 400;
  }),
  gemini(
    "an error of OpenAI's form",
    ["error.key", "error.no_key"],
    onStatus(
      401,
      (passing) => passing.text = '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}',
    ),
  ),
  gemini(
    "another status in the body than in the head",
    ["error.json", "error.member"],
    onStatus(400, (passing) => passing.text = passing.text.replace('"code":400', '"code":500')),
  ),
];

/** A usage with fewer tokens than any. */
const ONE_TOKEN = '{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}';

const REST: PlantedFault[] = [
  models("a list without object", ["list"], (passing) => {
    if (passing.path === "/v1/models") passing.text = passing.text.replace('"object":"list",', "");
  }),
  models("HEAD not allowed", ["head"], (passing) => {
    if (passing.method === "HEAD") passing.status = 405;
  }),
  models("CORS for everybody", ["cors"], ({ headers }) => headers.set("access-control-allow-origin", "*")),
  models("HTML for unknown paths", ["path"], (passing) => {
    if (passing.path.includes("/conform/nothing")) passing.text = "<html>Not found</html>";
  }),
  models(
    "a price as a number in words",
    ["rich"],
    (passing) => passing.text = passing.text.replace(/"prompt":"0"/, '"prompt":"free"'),
  ),
  models(
    "a date that is none",
    ["native", "native_one"],
    (passing) => passing.text = passing.text.replaceAll(/"created_at":"[^"]*"/g, '"created_at":"yesterday"'),
  ),
  models("an empty native list", ["native"], (passing) => {
    if (passing.path === "/anthropic/v1/models") passing.text = '{"data":[],"has_more":false}';
  }),
  images("a picture without usage", ["usage"], (passing) => {
    if (passing.path.endsWith("generations") && passing.request.stream !== true) {
      passing.text = passing.text.replace('"usage":', '"used":');
    }
  }),
  images("a picture that is none", ["whole"], (passing) => {
    if (passing.request.stream !== true && passing.path.endsWith("generations")) {
      passing.text = passing.text.replace(/"b64_json":"....../, '"b64_json":"AAAAAA');
    }
  }),
  images(
    "a stream that does not complete",
    ["stream"],
    (passing) => passing.text = passing.text.replaceAll("image_generation.completed", "image_generation.done"),
  ),
  embeddings("a vector too few", ["whole", "tokens"], embedded((body) => (body.data as unknown[]).pop())),
  embeddings(
    "all vectors alike",
    ["similar"],
    embedded(({ data }) => {
      for (const item of data as JsonObject[]) item.embedding = (data as JsonObject[])[0]?.embedding;
    }),
  ),
  embeddings(
    "numbers in place of base64",
    ["base64"],
    (passing) => passing.text = passing.text.replaceAll(/"embedding":"[^"]*"/g, '"embedding":[1]'),
  ),
  embeddings(
    "text that is no base64",
    ["base64"],
    (passing) => passing.text = passing.text.replaceAll(/"embedding":"[^"]*"/g, '"embedding":"no base64"'),
  ),
  embeddings(
    "half a number in base64",
    ["base64"],
    (passing) => passing.text = passing.text.replaceAll(/"embedding":"[^"]*"/g, '"embedding":"AAA="'),
  ),
  embeddings("no usage", ["usage"], embedded((body) => delete body.usage)),
  embeddings("an answer without an id", ["request_id"], ({ headers }) => headers.delete("x-request-id")),
  embeddings("one vector for all tokens", ["tokens"], (passing) => {
    if (Array.isArray((passing.request.input as unknown[] | undefined)?.[0])) {
      passing.text = passing.text.replace(/,\{"object":"embedding","index":1[^}]*\}/, "");
    }
  }),
  embeddings("an empty list for no input", ["error.empty"], (passing) => {
    if (passing.status === 400 && passing.text.includes('"input"')) passing.status = 200;
  }),
  embeddings("vectors of a language model", ["error.language"], (passing) => {
    if (passing.request.model === "sluice/echo") passing.status = 200;
  }),
  rerank("an index that no document has", ["whole"], ranked(([, , last]) => Object(last).index = 3)),
  rerank("the worst first", ["order"], ranked((results) => results.reverse())),
  rerank("all results whatever top_n says", ["top_n"], (passing) => {
    if (passing.request.top_n !== undefined) {
      passing.text = passing.text.replace(/"results":\[(\{[^}]*\})/, '"results":[$1,$1');
    }
  }),
];

/** A fault of the answer with vectors as numbers. */
function embedded(change: (body: JsonObject) => void): Break {
  return (passing) => {
    if (!passing.text.startsWith('{"object":"list","data":[{"object":"embedding","index":0,"embedding":[')) return;
    const body = JSON.parse(passing.text);
    change(body);
    passing.text = JSON.stringify(body);
  };
}

/** A fault of the results of a reranking. */
function ranked(change: (results: JsonObject[]) => void): Break {
  return (passing) => {
    if (passing.request.top_n !== undefined || !passing.text.includes('"results":[')) return;
    const body = JSON.parse(passing.text);
    change(body.results);
    passing.text = JSON.stringify(body);
  };
}

/** Every fault. */
export const FAULTS: readonly PlantedFault[] = [...CHAT, ...RESPONSES, ...MESSAGES, ...GEMINI, ...REST];
