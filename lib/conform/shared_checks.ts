/** Checks of answers and tools that have one meaning in every text protocol. */
import type { Json, JsonObject } from "../json/mod.ts";
import { type CheckFunction, type Checks, Mismatch, must, show, Skip } from "./check.ts";
import { type CommonForm, streaming, streamOf, wholeOf } from "./http_checks.ts";
import type { Ability, HttpAnswer, SuiteContext } from "./suite_context.ts";
import { ARGUMENTS, BOTH, MAKE_PERSON, personProblem, RESULT, SEE, WEATHER } from "./prompts.ts";
import { objectOf, type WireStream } from "./sse.ts";

/** A call of a tool. */
export interface PlainCall {
  id: string;
  name: string;
  /** JSON text. */
  arguments: string;
}

/** An answer, whole or assembled from a stream, without its protocol's form. */
export interface PlainAnswer {
  /** As sent; of a chat stream, nothing. */
  body: JsonObject;
  text: string;
  calls: PlainCall[];
  /** Why it ended, in the protocol's word. */
  finish: string | null;
  /** As sent, unchecked. */
  usage: unknown;
  /** Its own messages, blocks or items, as they go back in the next request. */
  history: Json[];
  /** True if the model reasoned, so that equal texts may have cost different tokens. */
  hasReasoned: boolean;
}

/** A result that goes back for a call. */
export interface ToolResult {
  id: string;
  output: string;
  isError: boolean;
}

/** A protocol, as the shared checks need it beyond `Dialect`. */
export interface ProtocolForm extends CommonForm {
  readWhole(answer: HttpAnswer): PlainAnswer;
  readStream(stream: WireStream): PlainAnswer;
  /** Checks a usage and returns its totals. */
  tokens(usage: unknown): { input: number; output: number };
  tools(count?: number): JsonObject[];
  choices: Record<"forced" | "required" | "none", Json>;
  /** Members that allow two calls at once. */
  parallel: JsonObject;
  /** Why an answer with calls ends; absent: it has no word of its own. */
  toolFinish?: string;
  /** Members of a request that goes on after calls. */
  goOn(words: string, answer: PlainAnswer, results: readonly ToolResult[]): JsonObject;
  /** Members of a request with these words and an image. */
  withImage(words: string): JsonObject;
  /** Members that ask for JSON of the schema of a person. */
  schema: JsonObject;
}

/** An answer to a body that must be good. */
export async function ask(
  grammar: ProtocolForm,
  context: SuiteContext,
  { body, ability }: { body: JsonObject; ability?: Ability },
): Promise<PlainAnswer> {
  return grammar.readWhole(await context.good({ path: context.path(grammar.part), body }, ability));
}

/** The answer to a prompt that asks for tools, asked once per body. */
function askTools(
  grammar: ProtocolForm,
  context: SuiteContext,
  [words, more]: [string, JsonObject],
): Promise<PlainAnswer> {
  const body = grammar.body(context, words, more);
  return context.once(
    `${grammar.part} ${JSON.stringify(body)}`,
    () => ask(grammar, context, { body, ability: "tools" }),
  );
}

/** A call that the request forces. */
export async function forcedCall(grammar: ProtocolForm, context: SuiteContext): Promise<PlainAnswer> {
  const tool_choice = grammar.choices.forced;
  return await askTools(grammar, context, [WEATHER, { tools: grammar.tools(), tool_choice }]);
}

/** The answer to a prompt for two calls, which may have fewer. */
export function parallelCalls(grammar: ProtocolForm, context: SuiteContext): Promise<PlainAnswer> {
  return askTools(grammar, context, [BOTH, { tools: grammar.tools(), ...grammar.parallel }]);
}

/** Sends the model's own answer back with a result for each call. */
export async function goOn(
  grammar: ProtocolForm,
  context: SuiteContext,
  { words, answer, isError = false }: { words: string; answer: PlainAnswer; isError?: boolean },
): Promise<PlainAnswer> {
  must(answer.calls.length > 0, { expected: "a call to answer", seen: answer.history });
  const results = answer.calls.map(({ id }) => ({ id, output: RESULT, isError }));
  const more = { tools: grammar.tools(), ...grammar.goOn(words, answer, results) };
  return await ask(grammar, context, { body: grammar.body(context, words, more), ability: "tools" });
}

/** The checks of answers and tools that the protocols share. */
export function sharedChecks(grammar: ProtocolForm): Checks {
  const { part, tools, choices, toolFinish } = grammar;
  const both = async (context: SuiteContext): Promise<PlainAnswer> => {
    const answer = await parallelCalls(grammar, context);
    if (answer.calls.length < 2) throw new Skip("the model made one call at most");
    return answer;
  };
  return {
    "stream.same": (context) => checkSame(grammar, context),
    "json.schema": async (context) => {
      const body = grammar.body(context, MAKE_PERSON, grammar.schema);
      checkPerson((await ask(grammar, context, { body, ability: "response_format" })).text);
    },
    image: async (context) =>
      void await ask(grammar, context, { body: grammar.body(context, SEE, grammar.withImage(SEE)), ability: "image" }),
    "tools.forced": async (context) => {
      const { calls } = await forcedCall(grammar, context);
      must(calls[0]?.name === "get_weather", { expected: "a call of get_weather", seen: calls });
      checkCalls(calls);
    },
    [part === "messages" ? "tools.any" : "tools.required"]: async (context) => {
      const request = { tools: tools(1), tool_choice: choices.required };
      const { calls } = await askTools(grammar, context, [WEATHER, request]);
      must(calls.length > 0, { expected: "a call", seen: calls });
      checkCalls(calls);
    },
    "tools.none": async (context) => {
      const request = { tools: tools(), tool_choice: choices.none };
      const { calls, finish } = await askTools(grammar, context, [WEATHER, request]);
      must(calls.length === 0, { expected: "no call", seen: calls });
      must(toolFinish === undefined || finish !== toolFinish, { expected: "another reason to stop", seen: finish });
    },
    "tools.parallel": async (context) => checkCalls((await both(context)).calls),
    "tools.back": async (context) => {
      const answer = await forcedCall(grammar, context);
      const { text, calls, history } = await goOn(grammar, context, { words: WEATHER, answer });
      // In chat the history of an empty answer is a message all the same; in messages such an answer is usual.
      const isEmpty = part === "chat"
        ? text === "" && calls.length === 0
        : part === "responses" && history.length === 0;
      must(!isEmpty, { expected: "a text or a call", seen: "nothing" });
    },
    "tools.back_many": async (context) =>
      void await goOn(grammar, context, { words: BOTH, answer: await both(context) }),
  };
}

/** The same, streamed, for protocols that check it. */
export function schemaStream(grammar: ProtocolForm): CheckFunction {
  return async (context) => {
    const body = grammar.body(context, MAKE_PERSON, { ...grammar.schema, ...streaming(grammar.part) });
    const stream = await context.stream({ path: context.path(grammar.part), body }, "response_format");
    checkPerson(grammar.readStream(stream).text);
  };
}

async function checkSame(grammar: ProtocolForm, context: SuiteContext): Promise<string | void> {
  const whole = grammar.readWhole(await wholeOf(grammar, context));
  const streamed = grammar.readStream(await streamOf(grammar, context));
  const [one, other] = [grammar.tokens(whole.usage), grammar.tokens(streamed.usage)];
  must(one.input === other.input, { expected: "equal numbers of input tokens", seen: [one, other] });
  if (whole.text !== streamed.text || whole.hasReasoned || streamed.hasReasoned) {
    return "the two answers differ, so that only the prompt was compared";
  }
  must(one.output === other.output, { expected: "equal output tokens of equal texts", seen: [one, other] });
}

function checkPerson(text: string): void {
  const problem = personProblem(text);
  if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
}

/** Calls whose names are among the tools, with ids of their own and arguments of the right form. */
export function checkCalls(calls: readonly PlainCall[]): void {
  must(new Set(calls.map(({ id }) => id)).size === calls.length, { expected: "an id for each call", seen: calls });
  for (const call of calls) {
    const member = ARGUMENTS[call.name];
    must(member !== undefined, { expected: "a call of one of the tools", seen: call.name });
    const read = objectOf(call.arguments, "arguments");
    must(typeof read[member] === "string", { expected: `arguments with "${member}"`, seen: call.arguments });
  }
}
