/** All routes to the echo model: inside the called gateway, and behind it over each protocol of upstreams. */
import { type Gateway, sharedByFiles, startGateway } from "./gateway.ts";
import { GEMINI_KEY, startGemini } from "./gemini.ts";
import type { Body } from "./sse.ts";
import { skipInQuick } from "../support/skip.ts";

/** The model that every test calls, over one of the routes. */
export const ECHO = "sluice/echo";

/** A route to the model. */
export interface Route {
  /** The model to ask for. */
  model: string;
  /** Protocol of its upstream; `embedded`: the model inside the gateway. */
  upstream: "embedded" | "chat" | "responses" | "messages" | "gemini";
  /** True if signed reasoning can be sent back. Of the chat hosts, only OpenRouter accepts it. */
  keepsReasoning: boolean;
}

/** Protocols with objects as arguments of calls: their white space is not kept. */
function hasObjects({ upstream }: Pick<Route, "upstream">): boolean {
  return upstream === "messages" || upstream === "gemini";
}

/** Arguments with a number that binary floats cannot represent: it must pass as written. */
export function weatherArguments(route: Pick<Route, "upstream">): string {
  return hasObjects(route)
    ? '{"city":"Zürich","days":9007199254740993}'
    : '{"city": "Zürich", "days": 9007199254740993}';
}

/** Makes the model write a word and call `get_weather` and `clock`. */
export function twoCalls(route: Pick<Route, "upstream">): string {
  return `Both.\ncall:get_weather ${weatherArguments(route)}\ncall:clock {}`;
}

/**
 * A line that makes the model call a tool with free text. Where it becomes a function, the model knows it as one:
 * everywhere except in responses, and in chat for clients of chat, whose tools pass unchanged.
 */
export function customCall(
  { upstream }: Pick<Route, "upstream">,
  { client, name, input }: { client: "chat" | "responses"; name: string; input: string },
): string {
  const isWrapped = hasObjects({ upstream }) || (upstream === "chat" && client !== "chat");
  return `call:${name} ${isWrapped ? JSON.stringify({ input }) : input}`;
}

/** The model's name of a tool in a namespace: without namespaces it is part of the name. */
export function nameInNamespace({ upstream }: Pick<Route, "upstream">, namespace: string, name: string): string {
  return `${namespace}${upstream === "embedded" || upstream === "responses" ? "." : "__"}${name}`;
}

/** Names of dropped parameters. */
export function droppedNames({ headers }: Response): string[] {
  return headers.get("x-sluice-dropped")?.split(", ") ?? [];
}

const EMBEDDED: Route = { model: ECHO, upstream: "embedded", keepsReasoning: true };

/** All ways. */
export const ROUTES: readonly Route[] = [
  EMBEDDED,
  { model: "t/chat", upstream: "chat", keepsReasoning: false },
  { model: "t/openrouter", upstream: "chat", keepsReasoning: true },
  { model: "t/responses", upstream: "responses", keepsReasoning: true },
  { model: "t/messages", upstream: "messages", keepsReasoning: true },
  { model: "t/gemini", upstream: "gemini", keepsReasoning: true },
];

const FEW = skipInQuick("Two of three ways to the model for each test of an SDK");
let calls = 0;

/**
 * Returns the routes for one test. A fast run has every third route, different ones for the next test. So does an older
 * SDK, which gets the same answers as the newest one.
 */
export function routesOfTest({ isNewest = true }: { isNewest?: boolean } = {}): readonly Route[] {
  const turn = calls++ % 3;
  return FEW || !isNewest ? ROUTES.filter((_, index) => index % 3 === turn) : ROUTES;
}

/** The gateways of all ways. */
export interface Crossing {
  /** The gateway to call for a model. */
  gateway(route: Route): Gateway;
  stop(): Promise<void>;
}

/**
 * Starts a remote gateway with the echo model, and two local ones that use it as their upstream: one over each
 * protocol, and one as a customer of OpenRouter. They are two because OpenRouter issues the remote model's signatures,
 * and a gateway that knows their issuer sends them to no other.
 */
export async function startCrossing(): Promise<Crossing> {
  const far = await startGateway();
  const gemini = startGemini(far);
  const env = { FAR_KEY: far.key, GEMINI_KEY };
  const [near, customer] = await Promise.all([
    startGateway({ config: nearConfig(far.url, gemini.url), env }),
    startGateway({ config: customerConfig(far.url), env }),
  ]);
  return {
    gateway({ model, upstream }) {
      if (upstream === "embedded") return far;
      return model === "t/openrouter" ? customer : near;
    },
    async stop() {
      await Promise.all([near.stop(), customer.stop()]);
      await gemini[Symbol.asyncDispose]();
      await far.stop();
    },
  };
}

const api_key = { env: "FAR_KEY" };

/** The models by the vendors that the remote gateway simulates. The embedded model is in the remote gateway. */
function nearConfig(far: string, gemini: string): Body {
  return {
    embedded_models: false,
    upstreams: {
      compatible: { vendor: "openai-compatible", base_url: `${far}/v1`, api_key },
      openai: { vendor: "openai", base_url: `${far}/v1`, api_key },
      anthropic: { vendor: "anthropic", base_url: `${far}/anthropic`, api_key },
      google: { vendor: "gemini", base_url: gemini, api_key: { env: "GEMINI_KEY" } },
    },
    models: [
      row("t/chat", { upstream: "compatible", model: ECHO, protocol: "chat" }),
      row("t/responses", { upstream: "openai", model: ECHO, protocol: "responses" }),
      row("t/messages", { upstream: "anthropic", model: ECHO }),
      row("t/gemini", { upstream: "google", model: "echo" }),
    ],
  };
}

function customerConfig(far: string): Body {
  return {
    embedded_models: false,
    upstreams: { openrouter: { vendor: "openrouter", base_url: `${far}/v1`, api_key } },
    models: [row("t/openrouter", { upstream: "openrouter", model: ECHO })],
  };
}

/** A free model that can do everything, with one target. */
export function row(id: string, target: Body): Body {
  return {
    id,
    created: 1_700_000_000,
    context_length: 131_072,
    architecture: { input_modalities: ["text", "image", "file"] },
    pricing: { prompt: "0", completion: "0" },
    top_provider: { max_completion_tokens: 32_768 },
    reasoning: {
      modes: ["manual", "adaptive"],
      efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    },
    targets: [target],
  };
}

const useCrossing = sharedByFiles(startCrossing);

/** The gateways for all tests of a module. */
export function sharedCrossing(): (route: Route) => Gateway {
  const crossing = useCrossing();
  return (route) => crossing().gateway(route);
}

/** The remote gateway, which has the model and no configuration. */
export function sharedPlainGateway(): () => Gateway {
  const crossing = sharedCrossing();
  return () => crossing(EMBEDDED);
}
