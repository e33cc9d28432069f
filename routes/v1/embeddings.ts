export { createEmbeddings as POST } from "../../lib/retrieval/serve.ts";
