export { rerankDocuments as POST } from "../../lib/retrieval/serve.ts";
