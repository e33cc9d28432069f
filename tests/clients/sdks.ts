/** The official SDKs: two versions of each, put to the same tests; a quick run has the newest. */
import Anthropic0 from "anthropic-0";
import Anthropic from "anthropic-1";
import OpenAI6 from "openai-6";
import OpenAI from "openai-7";
import type { Gateway } from "./gateway.ts";
import { ECHO, type Route, routesOfTest } from "./upstreams.ts";
import { skipInQuick } from "../support/skip.ts";

// The used types are equal in both versions, but the compiler compares everything.
const IS_QUICK = skipInQuick("Older versions of the SDKs");
const OPENAI: readonly (typeof OpenAI)[] = [...IS_QUICK ? [] : [OpenAI6 as unknown as typeof OpenAI], OpenAI];
const ANTHROPIC: readonly (typeof Anthropic)[] = [
  ...IS_QUICK ? [] : [Anthropic0 as unknown as typeof Anthropic],
  Anthropic,
];

/** Arguments of a test. */
export interface OpenaiTest extends Route {
  client: OpenAI;
  /** The version under test: its error classes are its own. */
  Sdk: typeof OpenAI;
  gateway: Gateway;
}

/** Arguments of a test. */
export interface AnthropicTest extends Route {
  client: Anthropic;
  /** The version under test: its error classes are its own. */
  Sdk: typeof Anthropic;
  gateway: Gateway;
}

/** The route to the model inside the called gateway. */
const EMBEDDED: Route = { model: ECHO, upstream: "embedded", keepsReasoning: true };

/** Registers a test with every version of the npm package `openai`, of a gateway that answers by itself. */
export function testOpenai(name: string, gateway: () => Gateway, test: (given: OpenaiTest) => Promise<void>): void {
  for (const Sdk of OPENAI) {
    const title = `openai ${Sdk === OpenAI ? "7" : "6"}: ${name}`;
    Deno.test(title, () => test({ ...EMBEDDED, ...openaiGiven(Sdk, gateway()) }));
  }
}

/** Registers a test with every version of the npm package `openai`, for each way to the model. */
export function crossOpenai(
  name: string,
  gateway: (route: Route) => Gateway,
  test: (given: OpenaiTest) => Promise<void>,
  routes?: readonly Route[],
): void {
  for (const Sdk of OPENAI) {
    for (const route of routes ?? routesOfTest({ isNewest: Sdk === OpenAI })) {
      const title = `openai ${Sdk === OpenAI ? "7" : "6"}, ${route.model}: ${name}`;
      Deno.test(title, () => test({ ...route, ...openaiGiven(Sdk, gateway(route)) }));
    }
  }
}

function openaiGiven(Sdk: typeof OpenAI, gateway: Gateway): Omit<OpenaiTest, keyof Route> {
  return { client: openai(Sdk, gateway, gateway.key), Sdk, gateway };
}

/** Registers a test with every version of the npm package `@anthropic-ai/sdk`, of a gateway that answers by itself. */
export function testAnthropic(
  name: string,
  gateway: () => Gateway,
  test: (given: AnthropicTest) => Promise<void>,
): void {
  for (const Sdk of ANTHROPIC) {
    const title = `@anthropic-ai/sdk ${Sdk === Anthropic ? "1" : "0"}: ${name}`;
    Deno.test(title, () => test({ ...EMBEDDED, ...anthropicGiven(Sdk, gateway()) }));
  }
}

/** Registers a test with every version of the npm package `@anthropic-ai/sdk`, for each way to the model. */
export function crossAnthropic(
  name: string,
  gateway: (route: Route) => Gateway,
  test: (given: AnthropicTest) => Promise<void>,
  routes?: readonly Route[],
): void {
  for (const Sdk of ANTHROPIC) {
    for (const route of routes ?? routesOfTest({ isNewest: Sdk === Anthropic })) {
      const title = `@anthropic-ai/sdk ${Sdk === Anthropic ? "1" : "0"}, ${route.model}: ${name}`;
      Deno.test(title, () => test({ ...route, ...anthropicGiven(Sdk, gateway(route)) }));
    }
  }
}

function anthropicGiven(Sdk: typeof Anthropic, gateway: Gateway): Omit<AnthropicTest, keyof Route> {
  return { client: anthropic(Sdk, gateway, gateway.key), Sdk, gateway };
}

/** A client without retries, with the documented base URL. */
export function openai(Sdk: typeof OpenAI, { url }: Gateway, apiKey: string): OpenAI {
  return new Sdk({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

/** A client without retries, with the documented base URL. */
export function anthropic(Sdk: typeof Anthropic, { url }: Gateway, apiKey: string): Anthropic {
  return new Sdk({ baseURL: `${url}/anthropic`, apiKey, authToken: null, maxRetries: 0 });
}

/** The error that a call ends with, as the class it must be. */
export async function caught<T extends Error>(
  // deno-lint-ignore no-explicit-any
  type: abstract new (...args: any[]) => T,
  call: PromiseLike<unknown>,
): Promise<T> {
  try {
    await call;
  } catch (error) {
    if (error instanceof type) return error;
    throw error;
  }
  throw new Error(`Expected an error of class ${type.name}, got an answer`);
}

/** The items of an answer as input of the next request. The SDK's types forbid some that echo never writes. */
export function asInput({ output }: OpenAI.Responses.Response): OpenAI.Responses.ResponseInput {
  return output as OpenAI.Responses.ResponseInput;
}
