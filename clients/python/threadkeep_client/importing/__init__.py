"""Import of exports: files of ChatGPT, Claude and Threadkeep into conversations.

`files` finds what may hold conversations, `spans` tells where its JSON values lie without reading it whole, `catalog`
says of each what it is, `reading` reads one conversation into a draft, `building` gives it ids and a sound tree,
`sending` writes it through the client, and `running` does so with all of them.
"""
