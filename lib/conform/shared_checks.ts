/** Checks of answers and tools that are the same for every text protocol. */
import type { JsonObject } from "../json/mod.ts";
import { expectThat, Mismatch, show, Skip } from "./check.ts";
import { ARGUMENTS, BOTH, LONG, MAKE_PERSON, personProblem, READY, SEE, SHORT, WEATHER } from "./prompts.ts";
import type { PlainAnswer, PlainCall, ProtocolChecks, ProtocolClient, ProtocolForm } from "./protocol_client.ts";
import { DONE, objectOf } from "./sse.ts";

/** Creates the shared checks for a protocol. */
export function sharedChecks({ part, tools, choices, toolFinish, cutFinish }: ProtocolForm): ProtocolChecks {
  return {
    async "whole.usage"(client) {
      const { input } = client.form.tokens((await client.ready()).usage);
      expectThat(input > 0, "tokens of the prompt", input);
    },
    "stream.same": checkSame,
    async "length.whole"(client) {
      const { finish, usage } = await client.ask(LONG, await client.form.limit(client));
      expectThat(finish === cutFinish, cutFinish, finish);
      const { output } = client.form.tokens(usage);
      expectThat(output <= SHORT, `at most ${SHORT} output tokens`, output);
    },
    async "length.stream"(client) {
      const { finish } = client.form.aggregate(await client.events(LONG, await client.form.limit(client)));
      expectThat(finish === cutFinish, cutFinish, finish);
    },
    "json.schema": async (client) => checkPerson(await client.ask(MAKE_PERSON, client.form.schema, "response_format")),
    image: async (client) => void await client.ask(SEE, client.form.withImage(SEE), "image"),
    async "tools.forced"(client) {
      const { calls } = await client.forcedCall();
      expectThat(calls[0]?.name === "get_weather", "a call of get_weather", calls);
      checkCalls(calls);
    },
    async [part === "messages" ? "tools.any" : "tools.required"](client) {
      const { calls } = await client.askTools(WEATHER, { tools: tools(1), ...choices.required });
      expectThat(calls.length > 0, "a call", calls);
      checkCalls(calls);
    },
    async "tools.none"(client) {
      const { calls, finish } = await client.askTools(WEATHER, { tools: tools(), ...choices.none });
      expectThat(calls.length === 0, "no call", calls);
      expectThat(toolFinish === undefined || finish !== toolFinish, "another reason to stop", finish);
    },
    "tools.parallel": async (client) => checkCalls((await bothCalls(client)).calls),
    async "tools.back"(client) {
      const { text, calls, history } = await client.sendResults(WEATHER, await client.forcedCall());
      // In the chat protocol, even an empty answer has a message in its history, so text and calls are checked. In the
      // messages protocol and Gemini's, empty answers are common and accepted.
      const isEmpty = part === "chat"
        ? text === "" && calls.length === 0
        : part === "responses" && history.length === 0;
      expectThat(!isEmpty, "a text or a call", "nothing");
    },
    "tools.back_many": async (client) => void await client.sendResults(BOTH, await bothCalls(client)),
  };
}

async function bothCalls(client: ProtocolClient): Promise<PlainAnswer> {
  const answer = await client.parallelCalls();
  if (answer.calls.length < 2) throw new Skip("the model made one call at most");
  return answer;
}

/** Checks that a streamed answer fits a schema, for protocols whose suites have this check. */
export async function checkStreamedSchema(client: ProtocolClient): Promise<void> {
  checkPerson(client.form.aggregate(await client.events(MAKE_PERSON, client.form.schema, "response_format")));
}

async function checkSame(client: ProtocolClient): Promise<string | void> {
  const whole = await client.ready();
  const streamed = client.form.aggregate(await client.readyEvents());
  const tokens = [client.form.tokens(whole.usage), client.form.tokens(streamed.usage)] as const;
  const [wholeTokens, streamedTokens] = tokens;
  expectThat(wholeTokens.input === streamedTokens.input, "equal numbers of input tokens", tokens);
  if (whole.text !== streamed.text || whole.hasReasoned || streamed.hasReasoned) {
    return "the two answers differ, so that only the prompt was compared";
  }
  expectThat(wholeTokens.output === streamedTokens.output, "equal output tokens of equal texts", tokens);
}

function checkPerson({ text }: PlainAnswer): void {
  const problem = personProblem(text);
  if (problem !== undefined) throw new Mismatch("JSON of the schema", `${problem}: ${show(text)}`);
}

/** Checks that tool calls have known names, unique ids and valid arguments. */
export function checkCalls(calls: readonly PlainCall[]): void {
  expectThat(new Set(calls.map(({ id }) => id)).size === calls.length, "an id for each call", calls);
  for (const call of calls) {
    const member = ARGUMENTS[call.name];
    expectThat(member !== undefined, "a call of one of the tools", call.name);
    const input = objectOf(call.arguments, "arguments");
    expectThat(typeof input[member] === "string", `arguments with "${member}"`, call.arguments);
  }
}

/** Checks that a system prompt is counted as input. @param more members that contain it */
export async function checkSystem(client: ProtocolClient, more: JsonObject): Promise<PlainAnswer> {
  const answer = await client.ask(READY, more);
  const without = client.form.tokens((await client.ready()).usage).input;
  const seen = client.form.tokens(answer.usage).input;
  expectThat(seen > without, `more than ${without} input tokens`, seen);
  return answer;
}

/** Checks that each event has an `event:` line that equals the type in its data. */
export async function checkNames(client: ProtocolClient<PlainAnswer, { type: string }>): Promise<void> {
  const stream = await client.readyStream();
  const named = stream.events.filter(({ data }) => data !== DONE);
  client.form.readEvents(stream).forEach(({ type }, index) => {
    const name = named[index]?.name;
    expectThat(name === type, `event: ${type}`, name);
  });
}

/** Checks that the stream ends with `[DONE]`. */
export async function checkDone(client: ProtocolClient): Promise<void> {
  const { events } = await client.readyStream();
  const done = events.filter(({ data }) => data === DONE).length;
  expectThat(done === 1, "one [DONE]", `${done} of them`);
  expectThat(events.at(-1)?.data === DONE, "[DONE] at the end", events.at(-1)?.data);
}
