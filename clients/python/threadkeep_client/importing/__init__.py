"""Import of exports: files of ChatGPT, Claude and Threadkeep into conversations.

`files` finds what may hold conversations, `spans` tells where its JSON values lie without reading it whole, `values`
reads one at a time and leaves out what nobody could keep, `catalog` says of each what it is, `reading` reads one
conversation into a draft, `building` gives it ids and a sound tree, `sending` reads message after message and writes it
through the client, `meeting` compares with what stands here already, and `running` does so with all of them.
"""
