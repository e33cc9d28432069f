/**
 * Stores the responses that nodes share in Redis, each encrypted with a key that is derived from its client's API key.
 */
import { Buffer } from "node:buffer";
import { type ChainableCommander, Redis } from "ioredis";
import { redisWordOf } from "../causes.ts";
import { GatewayError } from "../errors.ts";
import type { Log } from "../log_events.ts";
import type { Secret } from "../secret.ts";
import type { ResponseOwner, SharedResponses } from "./recall.ts";
import type { KeptResponse } from "./recent_responses.ts";
import { seal, unseal } from "./seal.ts";

const PREFIX = "sluice:recall";

/** Shortest interval between two log lines about an unreachable Redis, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;

const CONNECT_TIMEOUT_MS = 2_000;

/** Time for the server to close the socket before it is destroyed, in milliseconds. */
const HANG_UP_MS = 100;

/** Longest reconnect delay, in milliseconds. */
const MAX_RECONNECT_MS = 5_000;

/** Longest wait for a reply, in milliseconds. It is long, because without a reply the client's conversation ends. */
const COMMAND_TIMEOUT_MS = 2_000;

/** Value of `retry-after` if Redis did not answer, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** The responses in Redis. */
export class RedisResponses implements SharedResponses {
  readonly #redis: Redis;
  readonly #log: Log;
  readonly #ended: Promise<void>;
  #loggedAt = -Infinity;

  constructor(url: Secret, log: Log) {
    this.#log = log;
    this.#redis = new Redis(url.reveal(), {
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      disconnectTimeout: HANG_UP_MS,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
      // Reconnects after a call without a reply: its connection may be lost although no error was reported.
      socketTimeout: COMMAND_TIMEOUT_MS,
      // After a failover, the server of this connection may be a replica.
      reconnectOnError: ({ message }) => message.startsWith("READONLY"),
      retryStrategy: (times) => Math.min(times * 100, MAX_RECONNECT_MS),
      protocol: 2,
      disableClientInfo: true,
      connectionName: "sluice-recall",
    });
    this.#ended = new Promise((resolve) => this.#redis.once("end", resolve));
    this.#redis.on("error", (error: unknown) => this.#logFailure(error));
  }

  /** Connects. Resolves even after a failure, as the client reconnects by itself. */
  async connect(): Promise<void> {
    await this.#redis.connect().catch((error: unknown) => this.#logFailure(error));
  }

  async put(owner: ResponseOwner, response: KeptResponse, forMs: number): Promise<void> {
    const key = responseKey(owner, response.id);
    try {
      const sealed = Buffer.from(await sealResponse(owner.secret, { key, response }));
      const commands = this.#redis.pipeline().set(key, sealed, "PX", forMs);
      for (const { id } of response.items) commands.set(itemKey(owner, id), response.id, "PX", forMs);
      await run(commands);
    } catch (error) {
      this.#logFailure(error);
    }
  }

  async find(owner: ResponseOwner, id: string, forMs: number): Promise<KeptResponse | undefined> {
    const key = responseKey(owner, id);
    const sealed = await this.#read(() => this.#redis.getexBuffer(key, "PX", forMs));
    return sealed === null ? undefined : await openResponse(owner.secret, { key, sealed: new Uint8Array(sealed) });
  }

  async findByItem(owner: ResponseOwner, itemId: string, forMs: number): Promise<KeptResponse | undefined> {
    const id = await this.#read(() => this.#redis.getex(itemKey(owner, itemId), "PX", forMs));
    return id === null ? undefined : await this.find(owner, id, forMs);
  }

  renew(keyId: string, response: KeptResponse, forMs: number): void {
    const commands = this.#redis.pipeline();
    for (const key of keysOf(keyId, response)) commands.pexpire(key, forMs);
    run(commands).catch((error: unknown) => this.#logFailure(error));
  }

  drop(keyId: string, response: KeptResponse): void {
    this.#redis.unlink(...keysOf(keyId, response)).catch((error: unknown) => this.#logFailure(error));
  }

  async close(): Promise<void> {
    const wasReady = this.#redis.status === "ready";
    this.#redis.disconnect();
    // Without a connection the client emits no `end` event, but may have a timer until then.
    await (wasReady ? this.#ended : new Promise((resolve) => setTimeout(resolve, HANG_UP_MS)));
  }

  async #read<Value>(command: () => Promise<Value>): Promise<Value> {
    try {
      return await command();
    } catch (error) {
      this.#logFailure(error);
      throw new GatewayError("overloaded", "Cannot look up earlier responses at this time: try again", {
        retryAfterMs: RETRY_AFTER_MS,
        refusal: { outage: "limits_store" },
        cause: error,
      });
    }
  }

  #logFailure(error: unknown): void {
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    this.#log({ level: "warn", event: "recall_not_shared", cause: redisWordOf(error) });
  }
}

/** Runs commands. @throws {Error} the error of the first command that fails */
async function run(commands: ChainableCommander): Promise<void> {
  const results = await commands.exec() ?? [];
  for (const [error] of results) if (error !== null) throw error;
}

function keysOf(keyId: string, { id, items }: KeptResponse): string[] {
  return [responseKey({ keyId }, id), ...items.map((item) => itemKey({ keyId }, item.id))];
}

function responseKey({ keyId }: Pick<ResponseOwner, "keyId">, id: string): string {
  return `${PREFIX}:${keyId}:response:${id}`;
}

function itemKey({ keyId }: Pick<ResponseOwner, "keyId">, id: string): string {
  return `${PREFIX}:${keyId}:item:${id}`;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Purpose of the encryption, with the version of the format. */
const PURPOSE = "sluice recall 1";
/** Size of the field with the length of the header, in bytes. */
const LENGTH_BYTES = 4;

/** Encrypts a response for the Redis key under which it is stored. */
async function sealResponse(
  secret: string,
  { key: place, response }: { key: string; response: KeptResponse },
): Promise<Uint8Array<ArrayBuffer>> {
  const { input, output, ...others } = response;
  const header = encoder.encode(JSON.stringify({ ...others, inputBytes: input.byteLength }));
  const bytes = new Uint8Array(LENGTH_BYTES + header.length + input.length + output.length);
  new DataView(bytes.buffer).setUint32(0, header.length);
  bytes.set(header, LENGTH_BYTES);
  bytes.set(input, LENGTH_BYTES + header.length);
  bytes.set(output, LENGTH_BYTES + header.length + input.length);
  return await seal(secret, { purpose: PURPOSE, place, bytes });
}

/** Decrypts a result of `sealResponse`. Returns `undefined` for another secret or Redis key. */
async function openResponse(
  secret: string,
  { key: place, sealed }: { key: string; sealed: Uint8Array<ArrayBuffer> },
): Promise<KeptResponse | undefined> {
  const bytes = await unseal(secret, { purpose: PURPOSE, place, sealed });
  if (bytes === undefined) return undefined;
  const start = LENGTH_BYTES + new DataView(bytes.buffer).getUint32(0);
  // The text is authentic, since only the gateway encrypts with this key, so its shape need not be checked.
  const { inputBytes, ...others } = JSON.parse(decoder.decode(bytes.subarray(LENGTH_BYTES, start)));
  const middle = start + inputBytes;
  return { ...others, input: bytes.slice(start, middle), output: bytes.slice(middle) };
}
