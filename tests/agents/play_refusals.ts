/** Refusals: agents wait for a limit and for a busy upstream, and give up at an exhausted budget. */
import { type Gateway, startGateway } from "../clients/gateway.ts";
import { ECHO, row } from "../clients/upstreams.ts";
import type { Agent, Endpoint, Folders } from "./agents.ts";
import { askAgent, type Failures } from "./play_agent.ts";

const MODEL = "t/priced";
const KEYS = { default: crypto.randomUUID(), poor: crypto.randomUUID() };

/** `retry-after` of the upstream's limit, in seconds: more than the first wait of every agent without it. */
const WAIT = 8;
const MARK = "the-only-mark";

/** Requests of the agent, and the refusal of its first one. */
interface Traffic {
  /** Answer of the upstream to the agent's first request; absent: none is refused. */
  refusal?: (() => Response) | undefined;
  /** Times of the agent's requests, in milliseconds. */
  readonly times: number[];
}

/** A gateway whose upstream refuses the agent's first request. */
class RefusingGateway implements AsyncDisposable {
  readonly traffic: Traffic;
  readonly #gateways: readonly Gateway[];
  readonly #servers: readonly Deno.HttpServer[];
  readonly url: string;

  private constructor(
    traffic: Traffic,
    gateways: readonly Gateway[],
    servers: [front: Deno.HttpServer, Deno.HttpServer],
  ) {
    this.traffic = traffic;
    this.#gateways = gateways;
    this.#servers = servers;
    this.url = addressOf(servers[0]);
  }

  static async start(): Promise<RefusingGateway> {
    const traffic: Traffic = { times: [] };
    const far = await startGateway();
    const upstream = serve((request) =>
      (traffic.times.length < 2 ? traffic.refusal?.() : undefined) ?? forward(request, far.url)
    );
    const near = await startGateway({ config: configOf(addressOf(upstream)), keys: KEYS, env: { FAR_KEY: far.key } });
    const front = serve((request) => {
      if (request.method === "POST") traffic.times.push(performance.now());
      return forward(request, near.url);
    });
    return new RefusingGateway(traffic, [near, far], [front, upstream]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server.shutdown();
    for (const gateway of this.#gateways) await gateway.stop();
  }
}

function serve(handler: (request: Request) => Response | Promise<Response>): Deno.HttpServer {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
}

function addressOf({ addr }: Deno.HttpServer): string {
  return `http://127.0.0.1:${(addr as Deno.NetAddr).port}`;
}

async function forward(request: Request, origin: string): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = new Headers(request.headers);
  for (const name of ["host", "connection", "content-length"]) headers.delete(name);
  // `fetch` would decode the answer and keep the header.
  headers.set("accept-encoding", "identity");
  const body = request.method === "POST" ? await request.arrayBuffer() : null;
  return await fetch(`${origin}${pathname}${search}`, { method: request.method, headers, body });
}

function configOf(upstream: string): Record<string, unknown> {
  const target = { upstream: "busy", model: ECHO, protocol: "chat" };
  return {
    embedded_models: false,
    upstreams: {
      busy: { vendor: "openai-compatible", base_url: `${upstream}/v1`, api_key: { env: "FAR_KEY" } },
    },
    groups: { default: {}, poor: { key_budget: { usd: "0.000001", period: "month" } } },
    models: [{ ...row(MODEL, target), pricing: { prompt: "0.00001", completion: "0.00001" } }],
  };
}

/** Lets an agent be refused. @param path its program */
export async function playRefusals(agent: Agent, path: string): Promise<Failures> {
  await using gateway = await RefusingGateway.start();
  const { traffic } = gateway;

  async function ask(key: string): Promise<string> {
    const folder = await Deno.makeTempDir({ prefix: "sluice-agents-" });
    const folders: Folders = { home: `${folder}/home`, project: `${folder}/project` };
    const endpoint: Endpoint = { url: gateway.url, key, model: MODEL };
    await Deno.mkdir(folders.home);
    await Deno.mkdir(folders.project);
    await agent.configure?.(endpoint, folders);
    const file = `${folders.project}/file.txt`;
    await Deno.writeTextFile(file, `${MARK}\n`);
    traffic.times.length = 0;
    const printed = await askAgent(path, agent.run(`Show.\n${agent.showFiles([file])}`, endpoint), folders);
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    return printed;
  }

  /** @returns what the agent printed unless it asked again after `seconds` and has the answer */
  async function comesBack(seconds: number): Promise<string | undefined> {
    const printed = await ask(KEYS.default);
    const [first = 0, second = 0] = traffic.times;
    // The third request has the result of the tool.
    const isPatient = traffic.times.length === 3 && second - first >= seconds * 1_000;
    return isPatient && printed.includes(MARK) ? undefined : `${describe(traffic.times)}\n${printed.slice(-1_500)}`;
  }

  const failures: Failures = {};
  traffic.refusal = () => refuse(429, "Rate limit reached", { "retry-after": String(WAIT) });
  failures.limit = await comesBack(WAIT);
  traffic.refusal = () => refuse(503, "Overloaded");
  failures.overloaded = await comesBack(0);
  traffic.refusal = undefined;
  const printed = await ask(KEYS.poor);
  const gaveUp = traffic.times.length === 1 && printed.includes(agent.patience?.budgetText ?? "");
  failures.budget = gaveUp ? undefined : `${describe(traffic.times)}\n${printed.slice(-1_500)}`;
  return failures;
}

function refuse(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error: { message, type: "server_error", param: null, code: null } }, { status, headers });
}

function describe([first = 0, ...others]: readonly number[]): string {
  return `Requests after 0${others.map((time) => `, ${Math.round(time - first)}`).join("")} ms`;
}
