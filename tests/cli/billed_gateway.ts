/** A gateway in a process of its own, with a model that has a price and a key that pays for it. */
import { run, type Running, startReused } from "../support/program.ts";
import { postChat } from "../support/post_chat.ts";

/** A configuration with one model, which has a price. */
export const PRICED = {
  embedded_models: false,
  models: [{
    id: "acme/assistant",
    created: 1_761_955_200,
    context_length: 131_072,
    pricing: { prompt: "0.00000125", completion: "0.00001" },
    targets: [{ upstream: "embedded", model: "echo" }],
  }],
};

const CONFIG = {
  ...PRICED,
  groups: { team: { models: ["acme/*"], price_factor: "0.8" } },
};

/** A gateway that sends bills. */
export interface BilledGateway extends Running {
  keyId: string;
  /** Requests an answer and reads all of it. Returns the request id that the client received. */
  ask(model?: string): Promise<string>;
  /** Ends it and waits for that. */
  stop(): Promise<void>;
}

/** Starts one in this folder, with the key "ci" of the group "team". */
export async function startBilled(folder: string, starting = startReused): Promise<BilledGateway> {
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(CONFIG));
  const { out, err } = await run(["keys", "add", "ci", "--group", "team"], { folder });
  const gateway = await starting([], { folder });
  return {
    ...gateway,
    keyId: /key_[\w-]+/.exec(err)?.[0] ?? "",
    async ask(model = "acme/assistant") {
      const response = await postChat(gateway.origin, out.trim(), {
        model,
        messages: [{ role: "user", content: "Hello, how are you today?" }],
      });
      await response.body?.pipeTo(new WritableStream());
      return response.headers.get("x-request-id") ?? "";
    },
    async stop() {
      gateway.kill("SIGTERM");
      await gateway.ended;
    },
  };
}
