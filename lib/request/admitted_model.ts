/** The models that a request was admitted for. */
import type { ClientRequest } from "../upstreams/upstream.ts";
import type { Admitted } from "./admission.ts";

/** A model that may answer, and the request as it would get it. */
export interface AdmittedModel extends Admitted {
  client: ClientRequest;
}

/** Admitted models, the preferred one first. */
export type AdmittedModels = readonly [AdmittedModel, ...AdmittedModel[]];
