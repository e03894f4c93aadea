export { LABEL_PEER } from '../api/names.ts';
/**
 * On what lending made because of a contract, with the value `contract`. Only such objects are changed or deleted by
 * it: a tenant that people made with `tributary tenant` bears LABEL_PEER too, and is theirs.
 */
export const LABEL_TENANCY = 'tributary.dev/tenancy';
export const TENANCY_CONTRACT = 'contract';
