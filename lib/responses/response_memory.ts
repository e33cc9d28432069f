/** Finds and stores the responses of one API key, or of one connection. */
import type { LocalResponses, Recall, ResponseOwner } from "../recall/recall.ts";
import type { KeptResponse, RecallLimits } from "../recall/recent_responses.ts";

/** Responses that one client can refer to. */
export interface ResponseMemory {
  /** Limits of stored responses; `null` if responses are not stored. */
  readonly limits: RecallLimits | null;
  /** True if responses with `store: false` are stored, too. */
  readonly keepsAll: boolean;
  /** True if this process has a response with this id. */
  has(id: string): boolean;
  /** Finds a response by its id; undefined if it is not stored. */
  find(id: string): Promise<KeptResponse | undefined>;
  /** Finds the response that has an output item; undefined if none is stored. */
  findByItem(itemId: string): Promise<KeptResponse | undefined>;
  /** True if only this connection can find a response. */
  isLocal(id: string): boolean;
  /** The API key, with which compactions are encrypted. */
  readonly secret: string;
  /** Stores a response. @param isStored true if other connections of the key may refer to it */
  put(response: KeptResponse, isStored: boolean): Promise<void> | undefined;
}

/** Returns the responses of one key. */
export function keyMemory(recall: Recall, owner: ResponseOwner): ResponseMemory {
  return {
    limits: recall.limits,
    secret: owner.secret,
    keepsAll: false,
    has: (id) => recall.has(owner.keyId, id),
    find: (id) => recall.find(owner, id),
    findByItem: (itemId) => recall.findByItem(owner, itemId),
    isLocal: () => false,
    put: (response, isStored) => isStored ? recall.put(owner, response) : undefined,
  };
}

/** Returns the responses of one connection together with those of its key. */
export function connectionMemory(local: LocalResponses, shared: ResponseMemory): ResponseMemory {
  return {
    limits: shared.limits,
    secret: shared.secret,
    keepsAll: true,
    has: (id) => local.has(id) || shared.has(id),
    find: async (id) => local.find(id) ?? await shared.find(id),
    findByItem: async (itemId) => local.findByItem(itemId) ?? await shared.findByItem(itemId),
    isLocal: (id) => local.has(id),
    put(response, isStored) {
      if (isStored) return shared.put(response, true);
      local.put(response);
      return undefined;
    },
  };
}
