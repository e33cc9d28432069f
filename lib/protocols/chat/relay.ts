/**
 * Relays chat completions. Edits: the model id of every chunk, the usage, which is removed unless the client asked for
 * it, content in parts, which becomes text, what SDKs need to assemble a call (its index from 0, id and type), and the
 * finish reason `stop` of an answer with calls, at which agents would stop.
 */
import {
  findValue,
  isObject,
  type JsonObject,
  type Member,
  memberText,
  type ObjectText,
  parseJson,
  parsePlain,
  scanMembers,
  spliceMembers,
} from "../../json/mod.ts";
import { MAX_ANSWERS } from "../canonical/types.ts";
import { templateEdit } from "../frame_template.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import { stringOf } from "../members.ts";
import { editElements, editMember, type Relay } from "../relay.ts";
import { type BegunCall, CallFinder } from "./call_finder.ts";
import { thinkingText } from "./chat_reply_reader.ts";
import { chatTemplateRule } from "./read_stream.ts";
import { streamWriter } from "./write_stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** Values that ask for the default. Only some hosts know them: llama.cpp and LM Studio the first, Groq the last. */
const DEFAULTS = [["max_tokens", -1], ["max_completion_tokens", -1], ["reasoning_effort", "default"]] as const;

/** Requests to upstreams always ask for the usage, because the gateway bills by it. */
export const chatRelay: Relay = {
  unsetMembers: (body) =>
    DEFAULTS.flatMap(([name, value]) => {
      const text = memberText(body, name);
      return text !== undefined && parsePlain(text) === value ? [name] : [];
    }),
  streamEdits(body) {
    const streamOptions = memberText(body, "stream_options");
    return {
      stream_options: spliceMembers(streamOptions?.startsWith("{") ? streamOptions : "{}", { include_usage: "true" }),
    };
  },
  editReply(answer, context) {
    const text = callEditor(context, "message")(withTexts(answer.text, "message"));
    return text === answer.text ? answer : scanMembers(text);
  },
  machine(context) {
    // It has state, but the rule below applies to no chunk with calls, so each chunk is numbered once.
    const editCalls = callEditor(context, "delta");
    const editText = (chunk: ObjectText) => editChunk(chunk, context, editCalls);
    const edit = templateEdit((data) => editText(scanMembers(data)), chatTemplateRule);
    return {
      push({ data, read }) {
        const edited = read === undefined ? edit(data) : editText({ text: data, members: read?.members ?? [] });
        return edited === undefined ? [] : [{ data: edited }];
      },
      end: () => [DONE],
      fail: (error) => streamWriter(context).push({ type: "error", error }),
    };
  },
};

/** Returns a chunk for the client; undefined if the client does not get it. */
function editChunk(
  chunk: ObjectText,
  context: ResponseContext,
  editCalls: (chunk: string) => string,
): string | undefined {
  const usage = memberOf(chunk, "usage");
  const isUnrequested = usage !== undefined && context.prompt.includeUsage !== true;
  if (isUnrequested && isUsageOnly(chunk, usage)) return undefined;
  const edits: Record<string, string | undefined> = {};
  if (memberOf(chunk, "model") !== undefined) edits.model = JSON.stringify(context.model);
  if (isUnrequested) edits.usage = undefined;
  return editCalls(withTexts(spliceMembers(chunk, edits), "delta"));
}

/** Matches calls. Nothing else matches: quotes inside a text are escaped. */
const CALLS = /"tool_calls"\s*:\s*\[/;

/** The calls of one choice. */
interface ChoiceCalls {
  finder: CallFinder;
  count: number;
}

/**
 * Creates an edit of a whole answer, or of the chunks of a stream. It gives the first piece of each call a type and an
 * id, and an answer with calls the finish reason `tool_calls`. In a stream each call gets its position as its index,
 * too: some upstreams send no index, the same for all calls, or that of a content block. Gemini's endpoint for such
 * clients and Ollama have sent whole calls without a type or an id.
 */
function callEditor(context: ResponseContext, holder: "delta" | "message"): (text: string) => string {
  /** By the text of the choice's index. */
  const choices = new Map<string, ChoiceCalls>();

  function editCall(call: string, calls: ChoiceCalls, callsOfDelta: Set<BegunCall>): string {
    const entry = parsePlain(call);
    if (!isObject(entry)) return call;
    const { position, endFinder } = calls.finder.find(entry, callsOfDelta);
    const isWhole = holder === "message";
    const edits: Record<string, string> = isWhole || entry.index === position ? {} : { index: String(position) };
    if (position === calls.count) {
      calls.count++;
      // A later piece of an incomplete call may have the id.
      const newId = isWhole || endFinder.complete ? `call_${context.requestId}_${position}` : undefined;
      Object.assign(edits, missingMembers(entry, newId));
    }
    return Object.keys(edits).length === 0 ? call : spliceMembers(call, edits);
  }

  function editChoice(choice: string): string {
    const index = indexText(choice);
    let calls = choices.get(index);
    if (calls === undefined) {
      if (choices.size >= MAX_ANSWERS) return choice;
      choices.set(index, calls = { finder: new CallFinder(), count: 0 });
    }
    const callsOfDelta = new Set<BegunCall>();
    const editList = (list: string) => editElements(list, (call) => editCall(call, calls, callsOfDelta));
    return editMember(choice, holder, (message) => editMember(message, "tool_calls", editList));
  }

  function endChoice(choice: string): string {
    return (choices.get(indexText(choice))?.count ?? 0) === 0 ? choice : withCallsFinish(choice);
  }

  return (text) => {
    const edited = CALLS.test(text) ? editChoices(text, editChoice) : text;
    return choices.size > 0 && isOrdinaryEnd(edited, context) ? editChoices(edited, endChoice) : edited;
  };
}

/** Returns the text of a choice's index. */
function indexText(choice: string): string {
  const span = findValue(choice, ["index"]);
  return span === undefined ? "0" : choice.slice(span.start, span.end);
}

/** Matches an ordinary end. */
const STOP = /"finish_reason"\s*:\s*"stop"/;

/**
 * True if an answer ends as if it had no calls. OpenAI's answers do so if the client names the tool to call. The request
 * is read last, because that may parse it.
 */
function isOrdinaryEnd(answer: string, context: ResponseContext): boolean {
  return STOP.test(answer) && !isObject(context.request.tool_choice);
}

/** Returns the members that SDKs need of a call, as far as it lacks them. */
function missingMembers(call: JsonObject, newId: string | undefined): Record<string, string> {
  return {
    ...(typeof call.type !== "string" && { type: isObject(call.custom) ? '"custom"' : '"function"' }),
    ...(newId !== undefined && (call.id ?? "") === "" && { id: JSON.stringify(newId) }),
  };
}

function withCallsFinish(choice: string): string {
  return editMember(choice, "finish_reason", (reason) => reason === '"stop"' ? '"tool_calls"' : reason);
}

function editChoices(answer: string, edit: (choice: string) => string): string {
  return editMember(answer, "choices", (choices) => editElements(choices, edit));
}

/** Matches content in parts, and log probabilities. Nothing else matches: quotes inside a text are escaped. */
const PARTS = /"content"\s*:\s*\[/;

/** Returns an answer with texts in place of the parts that Mistral's reasoning models write. */
function withTexts(answer: string, holder: "delta" | "message"): string {
  if (!PARTS.test(answer)) return answer;
  return editChoices(answer, (choice) => editMember(choice, holder, joinParts));
}

/** Joins the parts of a message. Content with parts other than text and thinking stays as it is. */
function joinParts(message: string): string {
  const span = findValue(message, ["content"]);
  const parts = span && parseJson(message.slice(span.start, span.end));
  if (!Array.isArray(parts)) return message;
  let content = "";
  let thinking = "";
  for (const part of parts) {
    if (!isObject(part)) return message;
    if (part.type === "text") content += stringOf(part.text) ?? "";
    else if (part.type === "thinking") thinking += thinkingText(part);
    else return message;
  }
  return spliceMembers(message, {
    content: JSON.stringify(content),
    ...(thinking !== "" && { reasoning_content: JSON.stringify(thinking) }),
  });
}

/** True for the chunk with the usage and no choices. Azure's first chunk has neither and stays. */
function isUsageOnly(chunk: ObjectText, usage: Member): boolean {
  if (chunk.text.startsWith("null", usage.start)) return false;
  const choices = memberOf(chunk, "choices");
  return choices !== undefined && /^\[\s*\]$/.test(chunk.text.slice(choices.start, choices.end));
}

/** Returns a member of a chunk; undefined if there is none. As in the parser, the last of two equal names counts. */
function memberOf({ members }: ObjectText, memberName: string): Member | undefined {
  return members.findLast(({ name }) => name === memberName);
}
