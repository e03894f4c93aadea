/** The one class of client-node that the program uses, so that a bundle takes only what belongs to it. */
export { KubeConfig } from '@kubernetes/client-node';
